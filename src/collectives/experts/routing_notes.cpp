#include "collectives/experts/routing_notes.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <string>

#include "collectives/experts/check.h"
#include "tandem/error.h"

namespace tandem::kernels {

namespace {

struct Note {
  const ExpertPlan* plan;
  std::string sizes;
};

/// All PEs that are threads of this process write here.
struct Notes {
  std::mutex mutex;
  std::map<const void*, Note> of_memory;
};

Notes& notes() {
  static Notes& all = *new Notes;  // stays for plans that are destroyed at the program's end
  return all;
}

/// The options that decide where the arrays of a routing lie, and what its rows are.
std::string sizes_of(const ExpertOptions& o, int pes) {
  const std::string rows =
      o.layout == ExpertLayout::kByExpert ? fmt::format("most_rows {}", o.most_rows) : fmt::format("align {}", o.align);
  return fmt::format("{} tokens, top {} of {} experts, PEs {}, tp_size {}, {}", o.max_tokens, o.top_k, o.experts, pes,
                     o.tp_size, rows);
}

}  // namespace

void note_routing(const ExpertPlan& plan, const World& world, const void* routing) {
  const bool is_in_heap = world.bytes_from(routing).value_or(0) > 0;
  std::string sizes = sizes_of(plan.options(), world.num_pes());
  Notes& all = notes();
  const std::lock_guard lock(all.mutex);
  if (!is_in_heap) {  // it may be in the heap of another world
    all.of_memory.erase(routing);
    return;
  }
  all.of_memory.insert_or_assign(routing, Note{&plan, std::move(sizes)});
}

void forget_routings(const ExpertPlan* plan) {
  Notes& all = notes();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.of_memory, [&](const auto& one) { return one.second.plan == plan; });
}

void check_routing(const ExpertPlan& plan, const World& world, const void* routing) {
  if (world.bytes_from(routing).value_or(0) == 0) return;
  Notes& all = notes();
  const std::lock_guard lock(all.mutex);
  const auto found = all.of_memory.find(routing);
  if (found == all.of_memory.end() || found->second.plan == &plan) return;
  if (const std::string own = sizes_of(plan.options(), world.num_pes()); own != found->second.sizes)
    throw InvalidArgument(fmt::format("routing: one of {} given to {} of {}, allowed are those of the plan's own sizes",
                                      found->second.sizes, kExperts, own));
}

}  // namespace tandem::kernels
