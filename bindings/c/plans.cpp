#include "plans.h"

#include <algorithm>
#include <bit>
#include <exception>

#include "collectives/plan/collective.h"
#include "tandem/error.h"

namespace tandem::c {

namespace {

/// Plans are made for sizes up to these, each four times the one before; beyond, for eighths of a power of two.
constexpr Size kLeastClass = Size{64} << 10;
constexpr Size kLastClass = Size{256} << 20;
/// In place of a size: any beyond.
constexpr Size kLarge = 0;

Size bytes_per_count(const Operation& what, int pes) {
  return size_of(what.type) *
         std::max(input_elements(what.collective, 1, pes, 0, 0), output_elements(what.collective, 1, pes, 0, 0));
}

}  // namespace

Size Plans::size_class(Size bytes) {
  if (bytes > kLastClass)
    return round_up(bytes, static_cast<Size>(std::bit_floor(static_cast<std::uint64_t>(bytes))) / 8);
  Size most = kLeastClass;
  while (most < bytes) most *= 4;
  return most;
}

CollectiveOptions Plans::options(const Operation& what, Size bytes, bool local_in, bool local_out) const {
  CollectiveOptions options;
  options.type = what.type;
  options.op = what.op;
  options.scale_of_run = what.op == ReduceOp::kPremulSum;
  options.root = what.root;
  // At least one: an element of all PEs may be larger than the least class.
  options.max_count = std::max<Size>(bytes / bytes_per_count(what, world_->num_pes()), 1);
  options.local_in = local_in;
  options.local_out = local_out;
  options.staging = staging_;
  options.wire = what.wire;
  if (what.wire == WireFormat::kType)
    options.algorithm = controls_.algorithms[static_cast<std::size_t>(what.collective)];
  return options;
}

int Plans::blocks(const AlgorithmInfo& info, int chosen, Size bytes) const {
  // None: a copy engine moves what stays here, too.
  const bool takes_none = chosen == 0 && info.by_copy_engine && !reduces(info.collective);
  if (controls_.max_blocks == 0 || takes_none) return chosen;
  return std::min(chosen > 0 ? chosen : kernels::default_blocks(bytes, world_->team()), controls_.max_blocks);
}

Plans::Way& Plans::way(const Operation& what, Size count, bool local_in, bool local_out) {
  const Size bytes = size_class(count * bytes_per_count(what, world_->num_pes()));
  const auto key = std::tuple(what, bytes, local_in, local_out);
  if (const auto found = ways_.find(key); found != ways_.end()) return found->second;
  const CollectiveChoice chosen =
      choose_collective(*world_, what.collective, options(what, bytes, local_in, local_out), world_->team());
  const AlgorithmInfo& info = kernels::algorithm_for(what.collective, what.wire, chosen.algorithm).info;
  const bool between_nodes = !world_->team().one_node();
  const bool touch_in = between_nodes || info.peers_access_input();
  const bool touch_out = between_nodes || info.peers_access_output();
  Choice choice{chosen.algorithm};
  choice.blocks = blocks(info, chosen.blocks, bytes);
  const bool multiplies_in = what.op == ReduceOp::kPremulSum;
  choice.copies_in = multiplies_in || (touch_in && local_in);
  choice.copies_out = touch_out && local_out;
  choice.reaches_in = !multiplies_in && touch_in && !local_in;
  choice.reaches_out = touch_out && !local_out;
  Slot& slot = slots_[{what, bytes > kLastClass ? kLarge : bytes, choice}];
  return ways_[key] = {choice, bytes, &slot};
}

void Plans::make_staging() {
  const auto make = [&](Symm<std::byte>& memory, const char* what) {
    if (!memory && staging_.bytes > 0) memory = world_->heap().allocate<std::byte>(staging_.bytes, what);
  };
  make(staging_.in, "staged input");
  make(staging_.out, "staged output");
}

std::unique_ptr<CollectivePlan> Plans::make(const Operation& what, const Way& way) {
  if (!way.choice.reaches_in || !way.choice.reaches_out) make_staging();
  // A buffer that peers do not reach where it lies may be of any kind.
  CollectiveOptions chosen = options(what, way.bytes, !way.choice.reaches_in, !way.choice.reaches_out);
  chosen.algorithm = way.choice.algorithm;
  chosen.blocks = way.choice.blocks;
  return make_collective(*world_, what.collective, chosen);
}

bool Plans::give_all_back(const Caller& caller) {
  const auto goes = [](const auto& entry) { return entry.second.plan != nullptr && !entry.second.is_captured; };
  if (caller.is_captured || std::none_of(slots_.begin(), slots_.end(), goes)) return false;
  caller.stream.synchronize();
  for (auto& entry : slots_)
    if (goes(entry)) entry.second.plan.reset();
  return true;
}

void Plans::renew(const Operation& what, const Way& way, const Caller& caller) {
  Slot& slot = *way.slot;
  if (slot.plan != nullptr && (slot.is_captured || caller.is_captured)) captured_.push_back(std::move(slot.plan));
  if (slot.plan != nullptr) caller.stream.synchronize();
  slot = {};
  std::exception_ptr no_room;
  try {
    slot.plan = make(what, way);
  } catch (const OutOfMemory&) {  // on all PEs
    no_room = std::current_exception();
  }
  if (no_room != nullptr) {
    if (!give_all_back(caller)) std::rethrow_exception(no_room);
    slot.plan = make(what, way);
  }
  slot.bytes = way.bytes;
}

CollectivePlan& Plans::plan(const Operation& what, Size count, bool local_in, bool local_out, const Caller& caller) {
  const Way& way = this->way(what, count, local_in, local_out);
  Slot& slot = *way.slot;
  if (slot.plan == nullptr || slot.bytes < way.bytes) renew(what, way, caller);
  if (caller.is_captured) slot.is_captured = true;
  return *slot.plan;
}

}  // namespace tandem::c
