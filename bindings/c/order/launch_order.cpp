#include "order/launch_order.h"

#include <algorithm>
#include <map>

#include "last_call.h"

namespace tandem::c {

void LaunchOrder::reserve(LastCall& world, void* stream, int blocks, int sms) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.world == &world; });
  const int had = found == entries_.end() ? 0 : found->blocks;
  if (found != entries_.end()) entries_.erase(found);
  const int wanted = std::max(had, std::min(blocks, sms));
  int missing = wanted - sms;
  for (const Entry& entry : entries_) missing += entry.blocks;
  while (missing > 0 && !entries_.empty()) {
    Entry& oldest = entries_.front();
    oldest.world->let_wait(stream);
    const int taken = std::min(oldest.blocks, missing);
    oldest.blocks -= taken;
    missing -= taken;
    if (oldest.blocks == 0) entries_.pop_front();
  }
  entries_.push_back({&world, wanted});
}

void LaunchOrder::forget(const LastCall& world) {
  const std::lock_guard lock(mutex_);
  entries_.remove_if([&](const Entry& entry) { return entry.world == &world; });
}

LaunchOrder& launches_on(int device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, LaunchOrder>;  // worlds may last until the process ends
  const std::lock_guard lock(mutex);
  return all[device];
}

}  // namespace tandem::c
