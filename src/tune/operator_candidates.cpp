// The configurations that tuning tries.
#include "tandem/advanced/operator_tuning.h"

namespace tandem {

namespace {

struct Tile {
  int m, n;
};
/// Tile sizes that every backend has.
constexpr Tile kTiles[] = {{128, 256}, {128, 128}};
constexpr CopyBy kMovers[] = {CopyBy::kCopyEngine, CopyBy::kSm};
constexpr Direction kDirections[] = {Direction::kPush, Direction::kPull};

using List = std::vector<OperatorOptions>;

void add_gathers(List& list, OperatorOptions o, bool one_node, int pes) {
  for (const CopyBy mover : kMovers)
    for (const Direction direction : kDirections)
      for (const int splits : {1, 2, 4})
        for (const std::string& order : tile_orders(Operator::kAllGatherGemm))
          for (const int sms : mover == CopyBy::kSm ? std::vector{-1, 4, 8, 16} : std::vector{-1}) {
            if (one_node == (order == "own_node_first")) continue;
            if (pes == 2 && one_node && order != "own_first") continue;  // the only peer comes second in any order
            o.copy_by = mover;
            o.direction = direction;
            o.splits = splits;
            o.order = order;
            o.communication_sms = sms;
            list.push_back(o);
          }
}

void add_scatters(List& list, OperatorOptions o, bool one_node) {
  for (const CopyBy mover : kMovers)
    for (const Direction direction : kDirections)
      for (const int splits : {1, 2, 4})
        for (const int sms : {0, 4, 8}) {
          o.reduction = Reduction::kOwner;
          o.copy_by = mover;
          o.direction = direction;
          o.splits = splits;
          o.communication_sms = one_node || sms > 0 ? sms : -1;
          list.push_back(o);
        }
  if (!one_node) return;
  o.direction = Direction::kPush;
  o.communication_sms = 0;
  o.reduction = Reduction::kChain;
  for (const CopyBy mover : kMovers)
    for (const int splits : {1, 2, 4, 8}) {
      o.copy_by = mover;
      o.splits = splits;
      list.push_back(o);
    }
}

void add_all_reduces(List& list, OperatorOptions o, bool one_node) {
  o.shots = one_node ? 2 : 0;
  for (const CopyBy mover : kMovers)
    for (const int splits : {1, 2, 4, 8})
      for (const int sms : {0, 4, 8, 16}) {
        o.reduction = Reduction::kOwner;
        o.copy_by = mover;
        o.splits = splits;
        o.communication_sms = one_node || sms > 0 ? sms : -1;
        list.push_back(o);
      }
  if (!one_node) return;
  o.reduction = Reduction::kChain;
  o.copy_by = CopyBy::kCopyEngine;
  o.communication_sms = 0;
  for (const int splits : {1, 2, 4, 8}) {
    o.splits = splits;
    list.push_back(o);
  }
  o.reduction = Reduction::kOwner;
  o.shots = 1;
  o.copy_by = CopyBy::kSm;
  o.splits = 1;
  o.communication_sms = 0;
  list.push_back(o);
}

}  // namespace

std::vector<OperatorOptions> operator_candidates(Operator op, const OperatorOptions& problem, bool one_node, int pes) {
  List list;
  OperatorOptions o = problem;
  o.use_tuned = false;
  for (const Tile& tile : kTiles) {
    o.tile_m = tile.m;
    o.tile_n = tile.n;
    o.form = Form::kSequential;
    o.splits = 1;
    for (const CopyBy mover : kMovers) {
      o.copy_by = mover;
      list.push_back(o);
    }
    o.form = Form::kOverlapped;
    o.copy_by = {};
    if (op == Operator::kAllGatherGemm) add_gathers(list, o, one_node, pes);
    if (op == Operator::kGemmReduceScatter) add_scatters(list, o, one_node);
    if (op == Operator::kGemmAllReduce) add_all_reduces(list, o, one_node);
  }
  return list;
}

}  // namespace tandem
