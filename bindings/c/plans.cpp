#include "plans.h"

#include <algorithm>

namespace tandem::c {

namespace {

/// Plans are made for sizes up to these, each four times the one before.
constexpr Size kLeastClass = Size{64} << 10;

const AlgorithmInfo& info_of(Collective collective, const std::string& algorithm) {
  const auto& all = collective_algorithms();
  return *std::find_if(all.begin(), all.end(), [&](const AlgorithmInfo& info) {
    return info.collective == collective && info.name == algorithm;
  });
}

Size bytes_per_count(const Operation& what, int pes) {
  return size_of(what.type) *
         std::max(input_elements(what.collective, 1, pes, 0, 0), output_elements(what.collective, 1, pes, 0, 0));
}

}  // namespace

Size Plans::size_class(const Operation& what, Size count) const {
  const Size least = count * bytes_per_count(what, world_->num_pes());
  Size bytes = kLeastClass;
  while (bytes < least) bytes *= 4;
  return bytes;
}

CollectiveOptions Plans::options(const Operation& what, Size bytes, bool local_in, bool local_out) const {
  CollectiveOptions options;
  options.type = what.type;
  options.op = what.op;
  options.root = what.root;
  // At least one: an element of all PEs may be larger than the least class.
  options.max_count = std::max<Size>(bytes / bytes_per_count(what, world_->num_pes()), 1);
  options.local_in = local_in;
  options.local_out = local_out;
  options.staging = staging_;
  return options;
}

Plans::Way& Plans::way(const Operation& what, Size count, bool local_in, bool local_out) {
  const Size bytes = size_class(what, count);
  const auto key = std::tuple(what, bytes, local_in, local_out);
  if (const auto found = ways_.find(key); found != ways_.end()) return found->second;
  const CollectiveChoice chosen =
      choose_collective(*world_, what.collective, options(what, bytes, local_in, local_out), world_->team());
  const AlgorithmInfo& info = info_of(what.collective, chosen.algorithm);
  const bool between_nodes = !world_->team().one_node();
  const bool touch_in = between_nodes || info.peers_touch_input();
  const bool touch_out = between_nodes || info.peers_touch_output();
  Choice choice{chosen.algorithm};
  choice.blocks = chosen.blocks;
  choice.copies_in = touch_in && local_in;
  choice.copies_out = touch_out && local_out;
  choice.reaches_in = touch_in && !local_in;
  choice.reaches_out = touch_out && !local_out;
  return ways_[key] = {choice};
}

CollectivePlan& Plans::plan(const Operation& what, Size count, bool local_in, bool local_out) {
  Way& way = this->way(what, count, local_in, local_out);
  if (way.plan != nullptr) return *way.plan;
  const Size bytes = size_class(what, count);
  std::unique_ptr<CollectivePlan>& plan = plans_[{what, bytes, way.choice}];
  if (plan == nullptr) {
    // A buffer that peers do not reach where it lies may be of any kind.
    CollectiveOptions chosen = options(what, bytes, !way.choice.reaches_in, !way.choice.reaches_out);
    chosen.algorithm = way.choice.algorithm;
    chosen.blocks = way.choice.blocks;
    plan = make_collective(*world_, what.collective, chosen);
  }
  way.plan = plan.get();
  return *plan;
}

}  // namespace tandem::c
