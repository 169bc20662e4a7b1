#include "collectives/all_reduce_norm/check.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "collectives/all_reduce_norm/norm_args.h"
#include "collectives/plan/checked_plan.h"
#include "tandem/advanced/local_handle.h"
#include "tandem/error.h"

namespace tandem::kernels {

namespace {

constexpr Size kMostHidden = Size{1} << 20;
constexpr Size kMostElements = Size{1} << 40;  // of a call, so that no product overflows
const char* const kCall = "all_reduce_norm";

void check_number(const char* option, Size value, Size least, Size most) {
  if (value < least || value > most)
    throw InvalidArgument(fmt::format("{}: {} given to {}, allowed are {} to {}", option, value, kCall, least, most));
}

void check_positive(const char* option, double value) {
  if (!(value > 0) || !std::isfinite(static_cast<float>(value)) || static_cast<float>(value) == 0.0F)
    throw InvalidArgument(
        fmt::format("{}: {} given to {}, allowed are positive finite numbers of f32", option, value, kCall));
}

/// A matrix or vector of a call.
struct Buffer {
  const char* name;
  const void* address;
  Size bytes;
  bool announced;
  bool is_output;
};

std::array<Buffer, 8> buffers_of(const AllReduceNormOptions& o, const Team& team, const AllReduceNormCall& call) {
  const Size element = size_of(o.type);
  const Size row = o.hidden * element;
  const Size held = held_rows(o, team, call.rows) * row;
  const bool quantised = o.quantisation != Quantisation::kNone;
  const auto local = [](const auto& handle) -> const void* { return handle ? handle.local() : nullptr; };
  return {
      {{"in", local(call.in), call.rows * row, true, false},
       {"residual", call.residual, held, o.residual, false},
       {"weight", call.weight, row, o.norm != Norm::kNone, false},
       {"bias", call.bias, row, o.bias, false},
       {"norm_bias", call.norm_bias, row, o.norm_bias, false},
       {"out", local(call.out), call.rows * o.hidden * (quantised ? 1 : element), true, true},
       {"sum", local(call.sum), held, o.sum, true},
       {"scales", local(call.scales), call.rows * scales_of_row(o) * Size{sizeof(float)}, scales_of_row(o) > 0, true}}};
}

bool overlap(const Buffer& a, const Buffer& b) {
  const auto* const x = static_cast<const std::byte*>(a.address);
  const auto* const y = static_cast<const std::byte*>(b.address);
  return x != nullptr && y != nullptr && a.bytes > 0 && b.bytes > 0 && x < y + b.bytes && y < x + a.bytes;
}

/// Returns whether output `a` may take the place of `b`.
bool in_place(const AllReduceNormOptions& o, const Buffer& a, const Buffer& b) {
  const std::string_view output = a.name;
  const std::string_view input = b.name;
  if (a.address != b.address || a.bytes != b.bytes || b.is_output) return false;
  if (input == "residual") return output == "sum" || (output == "out" && o.quantisation == Quantisation::kNone);
  return input == "in" && (output == "sum" || (output == "out" && o.quantisation == Quantisation::kNone));
}

template <class T>
void check_handle(const char* what, const World& world, const Symm<T>& handle, bool must_be_symmetric) {
  if (!handle) return;
  if (handle.local() != handle.on(world.pe()))
    throw InvalidArgument(fmt::format("{}: a team's handle given to {}, allowed is the world's", what, kCall));
  if (must_be_symmetric && is_local_handle(handle))
    throw InvalidArgument(
        fmt::format("{}: memory that peers do not reach given to {}, allowed is the heap's", what, kCall));
}

void check_one(const World& world, const AllReduceNormOptions& o, const Buffer& buffer, Size alignment) {
  if (!buffer.announced && buffer.address != nullptr)
    throw InvalidArgument(fmt::format("{}: given to {}, but the plan's options announce none", buffer.name, kCall));
  if (!buffer.announced || buffer.bytes == 0) return;
  if (buffer.address == nullptr)
    throw InvalidArgument(fmt::format("{}: none given to {}, the plan's options announce one", buffer.name, kCall));
  if (reinterpret_cast<std::uintptr_t>(buffer.address) % static_cast<std::uintptr_t>(alignment) != 0)
    throw InvalidArgument(fmt::format("{}: {} given to {}, allowed are multiples of {} bytes", buffer.name,
                                      buffer.address, kCall, alignment));
  check_held(world, buffer.name, buffer.address, buffer.bytes, fmt::format("{} {}", kCall, o.algorithm));
}

}  // namespace

Size held_rows(const AllReduceNormOptions& options, const Team& team, Size rows) {
  return options.sharded_residual ? split(rows, team.size)[team.me].size() : rows;
}

Size scales_of_row(const AllReduceNormOptions& options) {
  if (options.quantisation == Quantisation::kRow) return 1;
  return options.quantisation == Quantisation::kGroup ? ceil_div(options.hidden, kScaleGroup) : 0;
}

void check(const AllReduceNormOptions& o) {
  if (o.type != DType::kF32 && o.type != DType::kF16 && o.type != DType::kBF16)
    throw InvalidArgument(fmt::format("type: {} given to {}, allowed are f32, f16 and bf16", name(o.type), kCall));
  check_number("hidden", o.hidden, 1, kMostHidden);
  check_number("max_rows", o.max_rows, 0, kMostElements / o.hidden);
  check_number("norm", static_cast<int>(o.norm), 0, static_cast<int>(Norm::kLayer));
  check_number("quantisation", static_cast<int>(o.quantisation), 0, static_cast<int>(Quantisation::kGroup));
  check_positive("epsilon", o.epsilon);
  if (o.norm_bias && o.norm == Norm::kNone)
    throw InvalidArgument(fmt::format("norm_bias: given to {} without a norm, allowed with rms and layer", kCall));
  check_positive("scale", o.scale);
  if (o.scale != 1 && o.quantisation != Quantisation::kStatic)
    throw InvalidArgument(fmt::format("scale: {} given to {} with quantisation {}, allowed with static", o.scale, kCall,
                                      name(o.quantisation)));
}

void check_blocks(const AllReduceNormOptions& o, int most) { check_number("blocks", o.blocks, 0, most); }

void check(const AllReduceNormOptions& o, const World& world, const AllReduceNormCall& call, bool two_shots) {
  check_number("rows", call.rows, 0, o.max_rows);
  check_handle("in", world, call.in, two_shots);
  check_handle("out", world, call.out, two_shots);
  check_handle("sum", world, call.sum, two_shots && !o.sharded_residual);
  check_handle("scales", world, call.scales, two_shots);
  const std::array<Buffer, 8> buffers = buffers_of(o, world.team(), call);
  for (const Buffer& buffer : buffers)
    check_one(world, o, buffer,
              std::string_view(buffer.name) == "scales" ? Size{sizeof(float)}
              : buffer.is_output && o.quantisation != Quantisation::kNone && std::string_view(buffer.name) == "out"
                  ? 1
                  : size_of(o.type));
  for (const Buffer& a : buffers)
    for (const Buffer& b : buffers)
      if (a.is_output && &a != &b && overlap(a, b) && !in_place(o, a, b))
        throw InvalidArgument(
            fmt::format("{}, {}: buffers that overlap given to {}, allowed are separate ones, or a sum or an "
                        "unquantised out in the "
                        "place of in or residual",
                        b.name, a.name, kCall));
}

}  // namespace tandem::kernels
