#include "tune/operator_names.h"

#include <fmt/format.h>

#include <initializer_list>

#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"

namespace tandem {

namespace tune {

namespace {

template <class E>
E parse(const char* what, const std::string& text, std::initializer_list<E> values) {
  for (const E value : values)
    if (text == name(value)) return value;
  throw InvalidArgument(fmt::format("{}: '{}' is none", what, text));
}

}  // namespace

const char* name(std::optional<CopyBy> copy_by) {
  if (!copy_by) return "suitable";
  return copy_by == CopyBy::kCopyEngine ? "ce" : "sm";
}
const char* name(std::optional<Reduction> reduction) { return reduction == Reduction::kChain ? "chain" : "owner"; }
const char* name(Direction direction) { return direction == Direction::kPush ? "push" : "pull"; }

Operator parse_operator(const std::string& text) {
  return parse("op", text, {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce});
}
Form parse_form(const std::string& text) {
  return parse("form", text, {Form::kOverlapped, Form::kSequential, Form::kDecomposed});
}
CopyBy parse_copy_by(const std::string& text) { return parse("transport", text, {CopyBy::kCopyEngine, CopyBy::kSm}); }
Reduction parse_reduction(const std::string& text) {
  return parse("reduction", text, {Reduction::kOwner, Reduction::kChain});
}
Direction parse_direction(const std::string& text) {
  return parse("direction", text, {Direction::kPush, Direction::kPull});
}

}  // namespace tune

std::string describe(Operator op, const OperatorOptions& o) {
  const auto or_suitable = [](int value) { return value > 0 ? std::to_string(value) : std::string("suitable"); };
  const bool chain = op != Operator::kAllGatherGemm && o.reduction == Reduction::kChain;
  return fmt::format(
      "{} {} {}{}{}, {} splits, order {}, tile {}x{}, {} SMs", name(o.form), tune::name(o.copy_by),
      tune::name(o.direction), op == Operator::kGemmAllReduce ? fmt::format(", {} shots", or_suitable(o.shots)) : "",
      chain ? ", chain" : "", or_suitable(o.splits), o.order.empty() ? "suitable" : o.order, or_suitable(o.tile_m),
      or_suitable(o.tile_n), o.communication_sms >= 0 ? std::to_string(o.communication_sms) : std::string("suitable"));
}

}  // namespace tandem
