#include "sim/memory/signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem::sim {

const char* symbol(Cmp cmp) {
  switch (cmp) {
    case Cmp::kEq:
      return "==";
    case Cmp::kNe:
      return "!=";
    case Cmp::kGt:
      return ">";
    case Cmp::kGe:
      return ">=";
    case Cmp::kLt:
      return "<";
    case Cmp::kLe:
      return "<=";
  }
  return "?";
}

int likely_writer(const std::vector<std::pair<int, int>>& examples, int pe, int pes) {
  if (examples.empty()) return -1;
  const auto [first_pe, first_writer] = examples.front();
  const auto distance = [pes](int from, int to) { return (to - from + pes) % pes; };
  const auto one = [&, writer = first_writer](const auto& example) { return example.second == writer; };
  const auto neighbour = [&, away = distance(first_pe, first_writer)](const auto& example) {
    return distance(example.first, example.second) == away;
  };
  if (examples.size() > 1 && std::all_of(examples.begin(), examples.end(), one)) return first_writer;
  if (!std::all_of(examples.begin(), examples.end(), neighbour)) return -1;
  return (pe + distance(first_pe, first_writer)) % pes;
}

bool PacketWait::advance() {
  for (; next < count; ++next) {
    std::uint64_t found = 0;
    std::memcpy(&found, packets + next * packet_bytes + flag_offset, static_cast<std::size_t>(flag_bytes));
    if (found != flag) return false;
  }
  return true;
}

Time SignalBoard::in_order(const Signal* word, int pe, Time time) {
  WordState& state = words_.of(word);
  if (state.sender == pe) time = std::max(time, state.arrives + 1);
  state.sender = pe;
  state.arrives = time;
  return time;
}

Time SignalBoard::own_changes(const Signal* words, Size n, Size stride, int pe) const {
  Time arrived = 0;
  for (Size i = 0; i < n; ++i) {
    const WordState* const state = words_.find(words + i * stride);
    if (state != nullptr && state->sender == pe) arrived = std::max(arrived, state->arrives);
  }
  return arrived;
}

void SignalBoard::apply(const SignalUpdate& update, const Cause& cause) {
  Epoch& value = update.word->value;
  value = update.op == SignalOp::kSet ? update.value : value + update.value;
  changed(update.word, cause);
}

void SignalBoard::changed(const Signal* word, const Cause& cause) {
  WordState& state = words_.of(word);
  state.writer = cause.pe;
  SignalWait* const last = std::exchange(state.last_wait, nullptr);
  if (last == nullptr || Fiber::unwinding()) return;  // those that waited may be gone
  for (SignalWait *wait = last->after, *after = nullptr; wait != nullptr; wait = after) {
    after = wait == last ? nullptr : wait->after;
    if (wait->advance()) {
      wait->released_by = cause;
      wait->ready(wait->argument);
    } else {
      add(*wait);
    }
  }
}

void SignalBoard::add(SignalWait& wait) {
  if (Fiber::unwinding()) return;  // others that waited may be gone
  SignalWait*& last = words_.of(wait.words + wait.next * wait.stride).last_wait;
  wait.after = last == nullptr ? &wait : std::exchange(last->after, &wait);
  last = &wait;
}
void SignalBoard::add(PacketWait& wait) { packet_waits_[wait.pe].push_back(&wait); }

void SignalBoard::packets_arrived(const void* begin, Size bytes, const Cause& cause) {
  const auto found = packet_waits_.find(memory_.pe_of(begin));
  if (found == packet_waits_.end()) return;
  const auto* const from = static_cast<const std::byte*>(begin);
  std::vector<PacketWait*> ready;
  std::erase_if(found->second, [&](PacketWait* wait) {
    if (from >= wait->end() || from + bytes <= wait->packets || !wait->advance()) return false;
    wait->released_by = cause;
    ready.push_back(wait);
    return true;
  });
  for (PacketWait* wait : ready) wait->ready(wait->argument);
}

std::vector<std::pair<int, int>> SignalBoard::examples_of(const Signal* word) const {
  const auto* const of_first = reinterpret_cast<const std::byte*>(word) - memory_.pe_of(word) * memory_.stride();
  std::vector<std::pair<int, int>> examples;
  for (int pe = 0; pe < memory_.pes(); ++pe) {
    const auto* const copy = reinterpret_cast<const Signal*>(of_first + pe * memory_.stride());
    const WordState* const state = words_.find(copy);
    if (state != nullptr && state->writer >= 0) examples.emplace_back(pe, state->writer);
  }
  return examples;
}

std::string SignalBoard::describe_writer(const Signal* word) const {
  if (const WordState* const state = words_.find(word); state != nullptr && state->writer >= 0)
    return fmt::format("; PE {} writes it", state->writer);
  const int likely = memory_.owns(word) ? likely_writer(examples_of(word), memory_.pe_of(word), memory_.pes()) : -1;
  return likely < 0 ? ", never written by anybody"
                    : fmt::format(", never written by anybody; probably PE {} was to write it", likely);
}

std::string SignalBoard::describe(const SignalWait& wait) const {
  const Signal* const word = wait.words + wait.next * wait.stride;
  return fmt::format("waits for {} {} {}, found {}{}", memory_.describe(word), symbol(wait.cmp), wait.value,
                     word->value, describe_writer(word));
}

std::string SignalBoard::describe(const PacketWait& wait) const {
  const std::byte* const packet = wait.packets + wait.next * wait.packet_bytes;
  std::uint64_t found = 0;
  std::memcpy(&found, packet + wait.flag_offset, static_cast<std::size_t>(wait.flag_bytes));
  return fmt::format("waits for packet {} with flag {}, found {}", memory_.describe(packet), wait.flag, found);
}

}  // namespace tandem::sim
