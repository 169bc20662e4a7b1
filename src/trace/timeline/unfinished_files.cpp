#include "trace/timeline/unfinished_files.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>

#include "trace/timeline/output_file.h"

namespace tandem::trace {
namespace {

enum class State { kFree, kClaimed, kNamed };

struct Slot {
  std::atomic<State> state{State::kFree};
  std::array<char, PATH_MAX> path;
};
static_assert(std::atomic<State>::is_always_lock_free);  // a signal handler reads it

constexpr int kSlots = 16;
std::array<Slot, kSlots> slots;

}  // namespace

UnfinishedFile::UnfinishedFile(const std::string& path) {
  if (path.size() >= PATH_MAX) return;
  for (int i = 0; i < kSlots; ++i) {
    Slot& slot = slots[static_cast<std::size_t>(i)];
    State expected = State::kFree;
    if (!slot.state.compare_exchange_strong(expected, State::kClaimed)) continue;
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.state = State::kNamed;
    slot_ = i;
    return;
  }
}

UnfinishedFile::~UnfinishedFile() {
  if (slot_ >= 0) slots[static_cast<std::size_t>(slot_)].state = State::kFree;
}

void remove_unfinished_files() noexcept {
  for (const Slot& slot : slots)
    if (slot.state == State::kNamed) ::unlink(slot.path.data());
}

}  // namespace tandem::trace
