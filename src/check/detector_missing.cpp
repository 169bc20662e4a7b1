/// Explanations of races: the missing order, and the operation that would give it.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/detector.h"
#include "check/mutants.h"
#include "sim/memory/signals.h"

namespace tandem::checker {

namespace {

bool is_atomic(Role role) { return role == Role::kAtomicRead || role == Role::kAtomicWrite; }

}  // namespace

bool Detector::is_of_signal(const Record& record) const {
  return is_atomic(record.role) && std::strcmp(infos_[record.info].operation, "atomic") != 0;
}

Tick Detector::issued_at(Stamp stamp) const {
  const AgentSlot& slot = agent_slots_[stamp.slot];
  if (slot.tick > 0) return slot.issued.tick;
  // The component of a thread's stores to one PE goes on with the thread's own.
  return slot.issued.tick > 0 ? slot.issued.tick + stamp.tick - 1 : stamp.tick;
}

bool Detector::follows(const Parcel& parcel, const Record& access) const {
  return parcel.knew.covers(access.stamp) || parcel.released.covers(access.stamp) ||
         (parcel.issuer == owners_[access.stamp.slot] && parcel.issued.tick >= issued_at(access.stamp));
}

bool Detector::carries(const Parcel& parcel, const Record& access) {
  if (parcel.released.covers(access.stamp)) return true;
  if (access.role != Role::kRead) return false;
  return (access.packet ? parcel.sent.packets_read : parcel.sent.reads).covers(access.stamp);
}

std::string Detector::described(const Parcel& parcel) const {
  const CheckSite from = site(parcel.info, parcel.occurrence);
  const std::string time =
      from.launch > 0 ? fmt::format(" (launch {}, occurrence {})", from.launch, from.occurrence) : "";
  return fmt::format("{} at {}:{}{}", from.operation, from.file, from.line, time);
}

std::string Detector::described(const Acquired& wait) const {
  const CheckSite at = site(wait.info, wait.occurrence);
  const std::string where = fmt::format("{} at {}:{}", at.operation, at.file, at.line);
  return std::strcmp(infos_[wait.info].operation, "atomic") == 0
             ? where
             : fmt::format("{} ({} {})", where, sim::symbol(wait.cmp), wait.value);
}

/// The missing order between two accesses of one thread, one of which goes on beside it.
std::string Detector::missing_within(const Record& first, const Record& second) const {
  const Info& facts = infos_[first.info];
  if (first.role == Role::kRead)
    return fmt::format("`quiet` between {} and the write to its source: the source must stay as it is until then",
                       facts.operation);
  if (facts.is_get) return fmt::format("`quiet` between {} and the use of what it brings", facts.operation);
  if (is_write(second.role))
    return fmt::format("`fence` (same PE) or `quiet` between the two writes: a {} has no order with what follows",
                       facts.operation);
  return fmt::format("`quiet` between {} and the read of its target", facts.operation);
}

/// Explains conflicts on words that atomics or signals use; empty where both accesses are plain.
std::string Detector::missing_of_word(const Record& first, const Record& second) const {
  if (is_atomic(first.role) && is_atomic(second.role))
    return same_word(first, second)
               ? "a scope that reaches both: Scope::kGpu between blocks of one PE, Scope::kSystem between PEs"
               : fmt::format("one size for all atomics of a word: these have {} and {} bytes, and so no order",
                             first.word_bytes, second.word_bytes);
  if (!is_of_signal(first) && !is_of_signal(second))
    return is_atomic(first.role) || is_atomic(second.role)
               ? "one of the two is no atomic: make it one (`fetch_add` of 0 reads), or order both by a signal"
               : "";
  if (!is_write(second.role))
    return "a load of a flag acquires nothing: read it by `wait`, `signal_wait_until` or `signal_test`";
  return "a signal word is written by signal operations alone: it only grows and needs no reset, or the reset must "
         "be ordered with every signal and wait by a barrier before and after it";
}

/// Explains why a signal that was sent after an access does not order it.
std::string Detector::weakness(const Record& first, const Parcel& parcel, bool relaxed) const {
  const std::string where = described(parcel);
  if (relaxed) return fmt::format("the wait for the {} is relaxed: an acquiring `wait`", where);
  if (first.role == Role::kRead && parcel.release != Parcel::Release::kEverything)
    return fmt::format("the {} does not tell that reads are over: `signal_after_reads` or `notify` in its place",
                       where);
  switch (parcel.release) {
    case Parcel::Release::kNothing:
      return fmt::format(
          "the {} is relaxed: `fence` (same PE) or `quiet` before it, or `notify` or `put_signal` in "
          "its place",
          where);
    case Parcel::Release::kReads:
      return fmt::format("the {} tells that reads are over, and orders no stores: `notify` in its place", where);
    case Parcel::Release::kOwnData:
      return fmt::format("the {} orders its own data only: `fence` or `quiet` before it, or `notify`", where);
    case Parcel::Release::kEverything:
      break;
  }
  if (!infos_[first.info].transfer) return {};
  return fmt::format("the {} orders puts through a NIC to its own PE only: `quiet` before it", where);
}

/// Names a signal that was sent after the access and let a wait pass, but is too weak. Empty: there is none.
std::string Detector::weak_signal(const Record& first, const ThreadState& thread) const {
  for (auto wait = thread.acquired.rbegin(); wait != thread.acquired.rend(); ++wait)
    for (const Entry& entry : wait->passed) {
      if (!follows(*entry.parcel, first) || (carries(*entry.parcel, first) && !wait->relaxed)) continue;
      if (std::string text = weakness(first, *entry.parcel, wait->relaxed); !text.empty())
        return text + fmt::format("; it lets the {} pass with value {}", described(*wait), entry.value);
    }
  return {};
}

/// Names the last wait for the PE of the access, and the older value with which it may have passed.
std::string Detector::old_value(const Record& first, const ThreadState& thread) const {
  const int pe = of(owners_[first.stamp.slot]).pe;
  for (auto wait = thread.acquired.rbegin(); wait != thread.acquired.rend(); ++wait) {
    const auto word = words_.find(wait->word);
    if (word == words_.end()) continue;
    const auto tells = [&](const Entry& entry) {
      const Parcel& parcel = *entry.parcel;
      return parcel.issuer != sim::kNoThread && (of(parcel.issuer).pe == pe || carries(parcel, first));
    };
    if (std::none_of(word->second.entries.begin(), word->second.entries.end(), tells)) continue;
    for (const Entry& entry : wait->passed) {
      if (carries(*entry.parcel, first)) continue;
      const std::string sent = entry.parcel->issuer == sim::kNoThread
                                   ? "which the word had before any signal"
                                   : fmt::format("sent by the {}, which does not carry this {}",
                                                 described(*entry.parcel), is_write(first.role) ? "write" : "read");
      return fmt::format("the {} may have passed with value {}, {}", described(*wait), entry.value, sent);
    }
  }
  return {};
}

/// Names the order that is missing where no signal was sent after the access.
std::string Detector::missing_altogether(const Record& first, const ThreadState& thread, const Record& second) const {
  const Info& facts = infos_[first.info];
  const Info& now = infos_[second.info];
  if (facts.transfer && facts.nonblocking && first.role == Role::kRead)
    return fmt::format("`quiet` after {} before anybody is told that its source may be written", facts.operation);
  if (of(facts.thread).pe == thread.pe && !facts.transfer)
    return fmt::format("order between {} and {}: the same stream, an event, a join of roles or a signal",
                       who(facts.thread, facts.kernel), who(now.thread, now.kernel));
  if (!is_write(first.role))
    return "the writer must know that the read is over: `notify` after the read and `wait` before the write (or "
           "another slot of the buffer, by epoch parity or credits)";
  if (!is_write(second.role))
    return "the reader must wait for a signal that the writer sends after the data: `put_signal`, `notify`, or "
           "`signal` after `fence`; then `wait`";
  return "the second writer must wait for a signal that follows the first write, or write elsewhere";
}

std::string Detector::missing(const Record& first, sim::Thread id, const NewAccess& second) const {
  const ThreadState& thread = of(id);
  if (second.after == &thread.tensor && thread.now.covers(first.stamp))
    return "the cross-proxy fence between the wait and the read by the tensor-memory engine: `consume_token`, or the "
           "GEMM's gate";
  if (owners_[first.stamp.slot] == id) return missing_within(first, second.record);
  if (std::string text = missing_of_word(first, second.record); !text.empty()) return text;
  if (std::string text = weak_signal(first, thread); !text.empty()) return text;
  std::string text = missing_altogether(first, thread, second.record);
  if (const std::string wait = old_value(first, thread); !wait.empty()) text += "; " + wait;
  return text;
}

}  // namespace tandem::checker
