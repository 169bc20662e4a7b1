#include "sim/signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

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

bool PacketWait::advance() {
  for (; next < count; ++next) {
    std::uint64_t found = 0;
    std::memcpy(&found, packets + next * packet_bytes + flag_offset, static_cast<std::size_t>(flag_bytes));
    if (found != flag) return false;
  }
  return true;
}

Time SignalBoard::in_order(const Signal* word, int pe, Time time) {
  auto& [last_pe, last_time] = under_way_.try_emplace(word, -1, 0).first->second;
  if (last_pe == pe) time = std::max(time, last_time + 1);
  last_pe = pe;
  last_time = time;
  return time;
}

void SignalBoard::apply(const SignalUpdate& update, const Cause& cause) {
  Epoch& value = update.word->value;
  value = update.op == SignalOp::kSet ? update.value : value + update.value;
  changed(update.word, cause);
}

void SignalBoard::changed(const Signal* word, const Cause& cause) {
  writers_[word] = cause.pe;
  const int pe = memory_.pe_of(word);
  const Size offset = memory_.offset_of(word);
  example_.try_emplace(offset, pe, cause.pe);
  const auto found = waits_.find(word);
  if (found == waits_.end()) return;
  std::vector<SignalWait*> waits;
  waits.swap(found->second);
  if (Fiber::unwinding()) return;  // those that waited may be gone
  for (SignalWait* wait : waits) {
    if (wait->advance()) {
      wait->released_by = cause;
      wait->ready(wait->argument);
    } else {
      waits_[wait->words + wait->next * wait->stride].push_back(wait);
    }
  }
}

void SignalBoard::add(SignalWait& wait) { waits_[wait.words + wait.next * wait.stride].push_back(&wait); }
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

int SignalBoard::expected_writer(const Signal* word) const {
  if (const auto found = writers_.find(word); found != writers_.end()) return found->second;
  // Nobody wrote this word yet. Where the same word of another PE was written, the same neighbour relation is likely.
  if (!memory_.owns(word)) return -1;
  const int pe = memory_.pe_of(word);
  const Size offset = memory_.offset_of(word);
  const auto found = example_.find(offset);
  if (found == example_.end()) return -1;
  const auto [other_pe, other_writer] = found->second;
  return (pe + other_writer - other_pe + memory_.pes()) % memory_.pes();
}

std::string SignalBoard::describe(const SignalWait& wait) const {
  const Signal* const word = wait.words + wait.next * wait.stride;
  const int writer = expected_writer(word);
  return fmt::format("waits for {} {} {}, found {}{}", memory_.describe(word), symbol(wait.cmp), wait.value,
                     word->value, writer < 0 ? ", never written by anybody" : fmt::format("; PE {} writes it", writer));
}

std::string SignalBoard::describe(const PacketWait& wait) const {
  const std::byte* const packet = wait.packets + wait.next * wait.packet_bytes;
  std::uint64_t found = 0;
  std::memcpy(&found, packet + wait.flag_offset, static_cast<std::size_t>(wait.flag_bytes));
  return fmt::format("waits for packet {} with flag {}, found {}", memory_.describe(packet), wait.flag, found);
}

}  // namespace tandem::sim
