#include "ops/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tandem/error.h"

namespace tandem {

namespace {

struct OrderName {
  const char* name;
  TileOrder order;
};

constexpr std::array<OrderName, 4> kGatherOrders{{{"own_first", TileOrder::kOwnFirst},
                                                  {"ring", TileOrder::kRing},
                                                  {"interleaved", TileOrder::kInterleaved},
                                                  {"own_node_first", TileOrder::kOwnNodeFirst}}};
constexpr std::array<OrderName, 2> kScatterOrders{
    {{"peers_first", TileOrder::kPeersFirst}, {"other_nodes_first", TileOrder::kOtherNodesFirst}}};

std::vector<OrderName> orders(Operator op) {
  if (op == Operator::kAllGatherGemm) return {kGatherOrders.begin(), kGatherOrders.end()};
  if (op == Operator::kGemmAllReduce) return {kScatterOrders.front()};
  return {kScatterOrders.begin(), kScatterOrders.end()};
}

void require(bool holds, const char* option, Size given, const std::string& allowed) {
  if (!holds) throw InvalidArgument(fmt::format("{}: {} given, allowed is {}", option, given, allowed));
}

/// Where tiles come from (or go to) decides: across nodes the own node is near; a mesh serves all peers at once.
TileOrder default_order(Operator op, const World& world) {
  const bool nodes = !world.team().one_node();
  if (op == Operator::kGemmAllReduce) return TileOrder::kPeersFirst;
  if (op == Operator::kGemmReduceScatter) return nodes ? TileOrder::kOtherNodesFirst : TileOrder::kPeersFirst;
  if (nodes) return TileOrder::kOwnNodeFirst;
  return world.machine().link.fabric == Fabric::kFullMesh ? TileOrder::kInterleaved : TileOrder::kOwnFirst;
}

TileOrder parse_order(Operator op, const std::string& text) {
  for (const OrderName& known : orders(op))
    if (text == known.name) return known.order;
  throw InvalidArgument(
      fmt::format("order: '{}' given, allowed for {} are {}", text, name(op), fmt::join(tile_orders(op), ", ")));
}

/// The fewest blocks that get 95% of what any number of them gets out of the curve, for each link that a PE drives.
int blocks_to_saturate(const Machine& machine, const Curve& curve, int peers) {
  if (curve.points.empty()) return 8;  // a real GPU's: what fills an NVLink port of eighteen links
  const int links = machine.link.fabric == Fabric::kFullMesh ? std::max(1, peers) : 1;
  int blocks = 1;
  while (blocks < machine.gpu.sm_count && curve.at(blocks) < 0.95 * curve.at(machine.gpu.sm_count)) ++blocks;
  return std::min(blocks * links, machine.gpu.sm_count / 2);
}

int default_communication_sms(Operator op, const OperatorOptions& options, const World& world) {
  const Machine& machine = world.machine();
  const int peers = world.team().node_size - 1;
  const Curve& curve = options.direction == Direction::kPush ? machine.link.store_gbps : machine.link.load_gbps;
  if (op == Operator::kAllGatherGemm)
    return options.copy_by == CopyBy::kSm ? std::max(1, blocks_to_saturate(machine, curve, peers)) : 0;
  if (op == Operator::kGemmAllReduce || options.reduction == Reduction::kChain) return 0;
  // Between nodes the reduction feeds the NIC while the GEMM runs; on one node all SMs reduce when the GEMM is done.
  return world.team().one_node() ? 0 : std::min(8, machine.gpu.sm_count / 2);
}

void check(Operator op, const OperatorOptions& options, const Machine& machine) {
  require(options.m >= 0, "m", options.m, "0 or more");
  require(options.n >= 1, "n", options.n, "1 or more");
  require(options.k >= 1, "k", options.k, "1 or more");
  require(options.splits >= 1 && options.splits <= 8, "splits", options.splits, "1 to 8");
  require(options.tile_m >= 1, "tile_m", options.tile_m, "1 or more");
  require(options.tile_n >= 1, "tile_n", options.tile_n, "1 or more");
  require(options.panel_group >= 0, "panel_group", options.panel_group, "0 or more");
  const bool needs_sm = op == Operator::kAllGatherGemm && options.copy_by == CopyBy::kSm;
  const int given = options.communication_sms;
  require(given == -1 || (given >= (needs_sm ? 1 : 0) && given < machine.gpu.sm_count), "communication_sms", given,
          fmt::format("{} to {} on {}, or -1 for what the transport needs", needs_sm ? 1 : 0, machine.gpu.sm_count - 1,
                      machine.name));
  if (options.type != DType::kBF16 && options.type != DType::kF16 && options.type != DType::kF32)
    throw InvalidArgument(
        fmt::format("type: {} given, allowed for {} are bf16, f16, f32", name(options.type), name(op)));
}

}  // namespace

const char* name(Operator op) {
  switch (op) {
    case Operator::kAllGatherGemm:
      return "all_gather_gemm";
    case Operator::kGemmReduceScatter:
      return "gemm_reduce_scatter";
    case Operator::kGemmAllReduce:
      return "gemm_all_reduce";
  }
  return "";
}

const char* name(Form form) {
  switch (form) {
    case Form::kOverlapped:
      return "overlapped";
    case Form::kSequential:
      return "sequential";
    case Form::kDecomposed:
      return "decomposed";
    case Form::kComputeOnly:
      return "compute_only";
    case Form::kCommunicationOnly:
      return "communication_only";
  }
  return "";
}

std::vector<std::string> tile_orders(Operator op) {
  std::vector<std::string> names;
  for (const OrderName& known : orders(op)) names.emplace_back(known.name);
  return names;
}

std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options) {
  check(op, options, world.machine());
  ops::Settings settings;
  settings.options = options;
  settings.order = options.order.empty() ? default_order(op, world) : parse_order(op, options.order);
  settings.communication_sms =
      options.communication_sms >= 0 ? options.communication_sms : default_communication_sms(op, options, world);
  if (op == Operator::kAllGatherGemm) return ops::make_all_gather_gemm(world, settings);
  if (op == Operator::kGemmAllReduce) {
    if (options.form == Form::kDecomposed)
      throw InvalidArgument("form: decomposed given, gemm_all_reduce has all others");
    if (options.form == Form::kOverlapped && !world.team().one_node())
      throw InvalidArgument("form: overlapped given, gemm_all_reduce between nodes has sequential");
    return ops::make_gemm_all_reduce(world, settings);
  }
  if (options.reduction == Reduction::kOwner || options.form != Form::kOverlapped)
    return ops::make_gemm_reduce_scatter(world, settings);
  if (!world.team().one_node()) throw InvalidArgument("reduction: kChain given, between nodes only kOwner is allowed");
  return ops::make_gemm_reduce_scatter_chain(world, settings);
}

}  // namespace tandem
