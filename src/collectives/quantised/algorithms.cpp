// The algorithms for wire formats of 8 bits. They are no entries of the collectives' registries: an option of the call
// asks for them, and no table may choose them.
#include <fmt/format.h>

#include <array>

#include "collectives/plan/plan.h"
#include "collectives/quantised/all_gather.h"
#include "collectives/quantised/all_reduce.h"
#include "collectives/quantised/reduce_scatter.h"

namespace tandem {

namespace kernels {

namespace {

template <Collective kCollective, template <class> class Kernel>
std::unique_ptr<CollectivePlan> make(World& world, const CollectiveOptions& options, const Team& team) {
  const auto plan = [&]<class T>() -> std::unique_ptr<CollectivePlan> {
    return make_kernel_plan<Kernel<T>>(world, kCollective, options, team);
  };
  if (options.type == DType::kF32) return plan.template operator()<float>();
  if (options.type == DType::kF16) return plan.template operator()<f16>();
  return plan.template operator()<bf16>();
}

constexpr const char* kQuantised = "quantised";

}  // namespace

const Algorithm* quantised_algorithm(Collective collective) {
  using enum Collective;
  constexpr PeerAccess kNone = PeerAccess::kNeither;
  static const std::array<Algorithm, 3> all{{
      {{kAllReduce, kQuantised, "codes of 8 bits to the shard's owner, and codes of the sums to all", true, false,
        kNone},
       make<kAllReduce, QuantisedAllReduce>},
      {{kAllGather, kQuantised, "codes of 8 bits to all", true, false, kNone}, make<kAllGather, QuantisedAllGather>},
      {{kReduceScatter, kQuantised, "codes of 8 bits to each part's owner, which sums them", true, false, kNone},
       make<kReduceScatter, QuantisedReduceScatter>},
  }};
  for (const Algorithm& algorithm : all)
    if (algorithm.info.collective == collective) return &algorithm;
  return nullptr;
}

void check_wire(Collective collective, const CollectiveOptions& o) {
  if (o.wire == WireFormat::kType) return;
  if (o.wire != WireFormat::kFp8 && o.wire != WireFormat::kInt8)
    throw InvalidArgument(fmt::format("wire: {} given to {}, allowed are the values of WireFormat",
                                      static_cast<int>(o.wire), name(collective)));
  const std::string call = fmt::format("{} with {} on the wire", name(collective), name(o.wire));
  if (quantised_algorithm(collective) == nullptr)
    throw InvalidArgument(fmt::format("wire: {} given to {}, allowed with all_reduce, all_gather and reduce_scatter",
                                      name(o.wire), name(collective)));
  if (o.type != DType::kF32 && o.type != DType::kF16 && o.type != DType::kBF16)
    throw InvalidArgument(fmt::format("type: {} given to {}, allowed are f32, f16 and bf16", name(o.type), call));
  if (reduces(collective) && o.op != ReduceOp::kSum)
    throw InvalidArgument(fmt::format("op: {} given to {}, allowed is sum", name(o.op), call));
  if (!o.algorithm.empty() && o.algorithm != kQuantised)
    throw InvalidArgument(fmt::format("algorithm: '{}' given to {}, allowed is {}", o.algorithm, call, kQuantised));
}

}  // namespace kernels

namespace {

constexpr std::array kFormats{WireFormat::kType, WireFormat::kFp8, WireFormat::kInt8};

}  // namespace

const char* name(WireFormat wire) {
  switch (wire) {
    case WireFormat::kType:
      return "type";
    case WireFormat::kFp8:
      return "fp8";
    case WireFormat::kInt8:
      return "int8";
  }
  return "unknown";
}

WireFormat parse_wire_format(const std::string& text) {
  for (const WireFormat wire : kFormats)
    if (text == name(wire)) return wire;
  throw InvalidArgument(fmt::format("wire: '{}' given, allowed are type, fp8 and int8", text));
}

}  // namespace tandem
