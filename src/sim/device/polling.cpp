#include "sim/device/polling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/device/role.h"

namespace tandem::sim {

bool Looks::has(const void* word) const {
  return std::any_of(seen_.begin(), seen_.begin() + count_, [&](const Seen& seen) { return seen.word == word; });
}

bool Looks::is_same(const void* word, std::uint64_t value) {
  const auto end = seen_.begin() + count_;
  const auto known = std::find_if(seen_.begin(), end, [&](const Seen& seen) { return seen.word == word; });
  if (known != end) return std::exchange(known->value, value) == value;
  if (count_ < seen_.size()) seen_[count_++] = {word, value};
  return false;
}

void Role::polled_unchanged(const Look& look, Site site) {
  const bool all_look = engine().pending() <= sim.polling.looking;
  sim.polling.idle_looks = all_look ? sim.polling.idle_looks + 1 : 0;
  if (sim.polling.idle_looks < Polling::kMostIdleLooks) return;
  if (sim.seams.monitor != nullptr) sim.seams.monitor->polls_for_ever(thread, look, site);
  engine().block([this, look, site] {
    std::uint64_t found = 0;
    if (sim.memory.backed(look.word)) std::memcpy(&found, look.word, static_cast<std::size_t>(look.bytes));
    return fmt::format("polls {} by {} at {}:{}, found {}; no PE is left to change it", sim.memory.describe(look.word),
                       look.operation, site.file, site.line, found);
  });
}

}  // namespace tandem::sim
