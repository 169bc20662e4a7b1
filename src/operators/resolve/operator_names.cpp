#include "operators/resolve/operator_names.h"

#include <fmt/format.h>

#include <array>
#include <span>

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

constexpr std::array<OrderName, 2> kAllReduceOrders{
    {{"parts_first", TileOrder::kPartsFirst}, {"peers_first", TileOrder::kPeersFirst}}};

std::span<const OrderName> orders(Operator op) {
  switch (op) {
    case Operator::kAllGatherGemm:
      return kGatherOrders;
    case Operator::kGemmReduceScatter:
      return kScatterOrders;
    case Operator::kGemmAllReduce:
      return kAllReduceOrders;
  }
  return {};
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
    case Form::kSuitable:
      return "suitable";
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

namespace ops {

TileOrder default_order(Operator op, const World& world) {
  const bool nodes = !world.team().one_node();
  if (op == Operator::kGemmAllReduce) return TileOrder::kPartsFirst;
  if (op == Operator::kGemmReduceScatter) return nodes ? TileOrder::kOtherNodesFirst : TileOrder::kPeersFirst;
  if (nodes) return TileOrder::kOwnNodeFirst;
  return world.machine().link.fabric == Fabric::kFullMesh ? TileOrder::kInterleaved : TileOrder::kOwnFirst;
}

std::string order_name(Operator op, TileOrder order) {
  for (const OrderName& known : orders(op))
    if (order == known.order) return known.name;
  return "";
}

TileOrder parse_order(Operator op, const std::string& text) {
  for (const OrderName& known : orders(op))
    if (text == known.name) return known.order;
  throw InvalidArgument(
      fmt::format("order: '{}' given, allowed for {} are {}", text, name(op), fmt::join(tile_orders(op), ", ")));
}

}  // namespace ops

}  // namespace tandem
