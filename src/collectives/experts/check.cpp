#include "collectives/experts/check.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <limits>

#include "collectives/all_reduce_norm/norm_args.h"
#include "collectives/experts/row_slots.h"
#include "collectives/plan/checked_plan.h"
#include "tandem/error.h"

namespace tandem::kernels {

void check_number(const char* what, Size value, Size least, Size most) {
  if (value < least || value > most)
    throw InvalidArgument(fmt::format("{}: {} given to {}, allowed are {} to {}", what, value, kExperts, least, most));
}

namespace {

using Buffer = ExpertBuffer;

void check_held(const World& world, const Buffer& b) {
  if (b.bytes == 0) return;
  if (b.address == nullptr)
    throw InvalidArgument(fmt::format("{}: none given to {}, allowed is memory of this PE", b.name, kExperts));
  if (reinterpret_cast<std::uintptr_t>(b.address) % static_cast<std::uintptr_t>(b.alignment) != 0)
    throw InvalidArgument(
        fmt::format("{}: {} given to {}, allowed are multiples of {} bytes", b.name, b.address, kExperts, b.alignment));
  kernels::check_held(world, b.name, b.address, b.bytes, kExperts);
}

void check_separate(const Buffer& a, const Buffer& out) {
  const auto* const from = static_cast<const std::byte*>(a.address);
  const auto* const to = static_cast<const std::byte*>(out.address);
  if (a.bytes > 0 && out.bytes > 0 && a.address != nullptr && from < to + out.bytes && to < from + a.bytes)
    throw InvalidArgument(
        fmt::format("{}, {}: buffers that overlap given to {}, allowed are separate ones", a.name, out.name, kExperts));
}

Size groups(const ExpertOptions& o) { return ceil_div(o.hidden, kScaleGroup); }

std::array<Buffer, 3> inputs_of(const ExpertOptions& o, const RouteCall& call) {
  const Size choices = call.tokens * o.top_k;
  const Size id = size_of(call.id_type);
  return {{{"ids", call.ids, choices * id, id},
           {"weights", call.weights, call.weights == nullptr ? 0 : choices * 4, 4},
           {"tokens_on_device", call.tokens_on_device, call.tokens_on_device == nullptr ? 0 : 4, 4}}};
}

std::array<Buffer, 2> outputs_of(const ExpertPlan& plan, const DispatchCall& call) {
  const ExpertOptions& o = plan.options();
  const bool is_fp8 = o.wire != ExpertWire::kType;
  const Size element = is_fp8 ? 1 : size_of(o.type);
  const Size rows = plan.dispatched_rows();
  const Size scales = is_fp8 ? (o.scales_by_group ? plan.scales_stride() : rows) * groups(o) * 4 : 0;
  return {{{"out", call.out, rows * o.hidden * element, element}, {"out_scales", call.out_scales, scales, 4}}};
}

}  // namespace

void check_buffers(const World& world, std::initializer_list<Buffer> in, std::initializer_list<Buffer> out) {
  for (const Buffer& b : in) check_held(world, b);
  for (const Buffer& b : out) check_held(world, b);
  for (const Buffer& to : out)
    for (const Buffer& from : in) check_separate(from, to);
  for (const Buffer* to = out.begin(); to != out.end(); ++to)
    for (const Buffer* other = out.begin(); other != to; ++other) check_separate(*other, *to);
}

void check(const ExpertOptions& o, int pes) {
  constexpr Size kMost = Size{1} << 16;
  if (o.type != DType::kF16 && o.type != DType::kBF16)
    throw InvalidArgument(fmt::format("type: {} given to {}, allowed are f16 and bf16", name(o.type), kExperts));
  check_number("max_tokens", o.max_tokens, 1, kMost);
  check_number("hidden", o.hidden, 1, kMost);
  check_number("tp_size", o.tp_size, 1, pes);
  if (pes % o.tp_size != 0)
    throw InvalidArgument(
        fmt::format("tp_size: {} given to {}, allowed are divisors of the {} PEs", o.tp_size, kExperts, pes));
  const int parts = pes / o.tp_size;
  check_number("experts", o.experts, parts, kMost);
  if (o.experts % parts != 0)
    throw InvalidArgument(fmt::format("experts: {} given to {}, allowed are multiples of {}, the PEs over tp_size",
                                      o.experts, kExperts, parts));
  check_number("top_k", o.top_k, 1, kMostTopK);
  check_number("wire", static_cast<int>(o.wire), 0, static_cast<int>(ExpertWire::kGiven));
  check_number("layout", static_cast<int>(o.layout), 0, static_cast<int>(ExpertLayout::kInPlace));
  check_number("align", o.align, 1, 1024);
  if (o.layout == ExpertLayout::kByExpert) {
    if (o.align != 1)
      throw InvalidArgument(
          fmt::format("align: {} given to {}, allowed is 1 with the layout by_expert", o.align, kExperts));
    check_number("most_rows", o.most_rows, 0, Size{pes} * o.max_tokens * o.top_k);
  } else if (o.most_rows != 0) {
    throw InvalidArgument(
        fmt::format("most_rows: {} given to {}, allowed is 0 without the layout by_expert", o.most_rows, kExperts));
  }
  if (o.scales_by_group && o.wire == ExpertWire::kType)
    throw InvalidArgument(fmt::format("scales_by_group: true given to {}, allowed is false with wire type", kExperts));
  check_number("transport", static_cast<int>(o.transport), 0, static_cast<int>(ExpertTransport::kFused));
  check_number("batches", o.batches, 0, 8);
}

void check_blocks(const ExpertOptions& o, const Machine& machine) {
  check_number("blocks", o.blocks, 0, Size{RowSlots::kBlocksPerSm} * machine.gpu.sm_count);
}

void check(const ExpertPlan& plan, const World& world, const RouteCall& call) {
  const ExpertOptions& o = plan.options();
  check_number("tokens", call.tokens, 0, o.max_tokens);
  if (call.id_type != DType::kI32 && call.id_type != DType::kI64)
    throw InvalidArgument(
        fmt::format("id_type: {} given to {}, allowed are i32 and i64", name(call.id_type), kExperts));
  const auto in = inputs_of(o, call);
  check_buffers(world, {in[0], in[1], in[2]}, {{"routing", call.routing, plan.routing_bytes(), 16}});
}

void check(const ExpertPlan& plan, const World& world, const DispatchCall& call) {
  const ExpertOptions& o = plan.options();
  check_number("tokens", call.tokens, 0, o.max_tokens);
  const Size type = size_of(o.type);
  const Size scales = o.wire == ExpertWire::kType ? 0 : groups(o) * 4;
  const Size in = o.wire == ExpertWire::kGiven ? 1 : type;
  if (o.wire != ExpertWire::kGiven && call.x_scales != nullptr)
    throw InvalidArgument(
        fmt::format("x_scales: given to {} whose wire is {}, allowed with given", kExperts, name(o.wire)));
  if (o.wire == ExpertWire::kType && call.out_scales != nullptr)
    throw InvalidArgument(fmt::format("out_scales: given to {} whose wire is type, allowed with fp8", kExperts));
  const auto out = outputs_of(plan, call);
  check_buffers(world,
                {{"x", call.x, call.tokens * o.hidden * in, in},
                 {"x_scales", call.x_scales, o.wire == ExpertWire::kGiven ? call.tokens * scales : 0, 4},
                 {"routing", call.routing, plan.routing_bytes(), 16}},
                {out[0], out[1]});
}

void check(const ExpertPlan& plan, const World& world, const RouteCall& choices, const DispatchCall& rows) {
  check(plan, world, choices);
  check(plan, world, rows);
  if (choices.routing != rows.routing)
    throw InvalidArgument(fmt::format("routing: {} and {} given to {}, allowed is the same memory for choices and rows",
                                      choices.routing, rows.routing, kExperts));
  if (rows.tokens < choices.tokens && choices.tokens_on_device == nullptr)
    throw InvalidArgument(fmt::format("tokens: {} rows for {} tokens given to {}, allowed is a row for each token",
                                      rows.tokens, choices.tokens, kExperts));
  for (const Buffer& to : outputs_of(plan, rows))
    for (const Buffer& from : inputs_of(plan.options(), choices)) check_separate(from, to);
}

void check(const ExpertPlan& plan, const World& world, const CombineCall& call) {
  const ExpertOptions& o = plan.options();
  check_number("tokens", call.tokens, 0, o.max_tokens);
  const Size type = size_of(o.type);
  const Size bytes = call.tokens * o.hidden * type;
  check_buffers(world,
                {{"y", call.y, plan.rows() * o.hidden * type, type},
                 {"routing", call.routing, plan.routing_bytes(), 16},
                 {"add", call.add, call.add == nullptr || call.add == call.out ? 0 : bytes, type}},
                {{"out", call.out, bytes, type}});
}

}  // namespace tandem::kernels
