#include "operators/plan/compared_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "tune/operator_names.h"

namespace tandem::ops {

namespace {

constexpr std::array kActivations{"none", "relu", "gelu", "silu", "swiglu", "geglu"};

std::string text_of_norm(const OperatorNorm& norm) {
  if (!norm.any()) return "";
  return fmt::format(", norm {} epsilon {} quantisation {} scale {}{}{}{}", name(norm.norm), norm.epsilon,
                     name(norm.quantisation), norm.scale, norm.residual ? " residual" : "",
                     norm.norm_bias ? " norm_bias" : "", norm.sum ? " sum" : "");
}

/// The options that decide what is computed.
std::string text_of_problem(const OperatorOptions& o) {
  std::string text;
  const auto add_if = [&](bool given, const char* name) { text += given ? name : ""; };
  add_if(o.fast_accumulation, ", fast accumulation");
  add_if(o.a_scale_per_row, ", scales of rows");
  add_if(o.b_scale_per_column, ", scales of columns");
  add_if(o.block_scales, ", scales of blocks");
  add_if(o.b_layout == BLayout::kKxN, ", B k x n");
  if (o.result_type() != OperatorOptions{.type = o.type}.result_type())
    text += fmt::format(", C {}", name(o.result_type()));
  if (o.activation != Activation::kNone)
    text += fmt::format(", {}", kActivations.at(static_cast<std::size_t>(o.activation)));
  if (!o.ns.empty()) text += fmt::format(", n {}", fmt::join(o.ns, " + "));
  return text + text_of_norm(o.norm);
}

/// The options that decide how it is computed.
std::string text_of_choices(const OperatorOptions& o) {
  const OperatorOptions open;
  std::string text;
  const auto add = [&](const char* option, const auto& given, const auto& by_default) {
    if (given != by_default) fmt::format_to(std::back_inserter(text), ", {} {}", option, given);
  };
  add("use_tuned", o.use_tuned, open.use_tuned);
  if (o.form != open.form) text += fmt::format(", {}", name(o.form));
  if (o.copy_by) text += fmt::format(", {}", tune::name(o.copy_by));
  if (o.direction != open.direction) text += fmt::format(", {}", tune::name(o.direction));
  if (o.reduction) text += fmt::format(", {}", tune::name(o.reduction));
  add("shots", o.shots, open.shots);
  add("splits", o.splits, open.splits);
  add("order", o.order, open.order);
  add("tile_m", o.tile_m, open.tile_m);
  add("tile_n", o.tile_n, open.tile_n);
  add("panel group", o.panel_group, open.panel_group);
  add("SMs", o.communication_sms, open.communication_sms);
  add("shared memory", o.memory != nullptr, false);
  return text;
}

}  // namespace

std::string compared_text(Operator op, const OperatorOptions& o) {
  return fmt::format("{} {} of at most {} x {} x {}{}{}", name(op), name(o.type), o.m, o.n, o.k, text_of_problem(o),
                     text_of_choices(o));
}

}  // namespace tandem::ops
