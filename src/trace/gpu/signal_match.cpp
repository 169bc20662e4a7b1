#include "trace/gpu/signal_match.h"

#include <algorithm>

namespace tandem::trace {

namespace {

const Sent* change_of_word(const std::vector<Sent>& changes, const Awaited& wait) {
  const Sent* last_added = nullptr;
  for (const Sent& change : changes) {
    if (change.op == SignalOp::kSet) {
      if (compare(change.value, wait.cmp, wait.value)) return &change;
    } else if (change.time <= wait.end) {
      last_added = &change;
    }
  }
  return last_added;
}

}  // namespace

void SignalMatch::sort() {
  for (auto& [word, changes] : signals_)
    std::stable_sort(changes.begin(), changes.end(), [](const Sent& a, const Sent& b) { return a.time < b.time; });
  for (auto& [key, list] : packets_) {
    std::stable_sort(list.begin(), list.end(), [](const Sent& a, const Sent& b) { return a.at.offset < b.at.offset; });
    for (const Sent& packets : list) longest_ = std::max(longest_, packets.bytes);
  }
}

std::optional<Sent> SignalMatch::released_by(const Awaited& wait) const {
  const Sent* last = nullptr;
  for (Size i = 0; i < wait.words; ++i) {
    const auto changes = signals_.find({wait.at.pe, wait.at.offset + i * Size{sizeof(Signal)}});
    const Sent* const own = changes == signals_.end() ? nullptr : change_of_word(changes->second, wait);
    if (own == nullptr) return std::nullopt;
    if (last == nullptr || own->time > last->time) last = own;
  }
  return last == nullptr ? std::nullopt : std::optional(*last);
}

std::optional<Sent> SignalMatch::brought_by(const Awaited& wait) const {
  const auto found = packets_.find({wait.at.pe, wait.value});
  if (found == packets_.end()) return std::nullopt;
  const std::vector<Sent>& list = found->second;
  const Sent* last = nullptr;
  const auto first = std::lower_bound(list.begin(), list.end(), wait.at.offset - longest_,
                                      [](const Sent& sent, Size offset) { return sent.at.offset < offset; });
  for (auto sent = first; sent != list.end() && sent->at.offset < wait.at.offset + wait.bytes; ++sent) {
    if (sent->at.offset + sent->bytes <= wait.at.offset) continue;
    if (last == nullptr || sent->time > last->time) last = &*sent;
  }
  return last == nullptr ? std::nullopt : std::optional(*last);
}

}  // namespace tandem::trace
