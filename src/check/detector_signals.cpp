/// Signals: the knowledge that they carry, the part of it that a wait acquires, and the allowed writers of a word.

#include <algorithm>
#include <iterator>

#include "check/detector.h"

namespace tandem::checker {

namespace {

/// The most values of a word that are remembered. A wait acquires only the knowledge that is common to all
/// values with which it may go on, not that of the value it saw.
constexpr std::size_t kMostEntries = 64;
/// The most waits of a thread that are remembered, for reports.
constexpr std::size_t kMostAcquired = 16;

/// Returns the knowledge that all of these values have in common: the wait may have seen any of them.
template <class Reaches>
Carried weakest(const std::vector<Entry>& entries, const Reaches& reaches) {
  Carried all = *entries.front().parcel;
  for (const Entry& entry : entries) {
    if (!reaches(entry)) return {};
    all.released.meet(entry.parcel->released);
    all.sent.meet(entry.parcel->sent);
  }
  return all;
}

const char* signal_name(ThreadKind kind, bool releases, bool after_reads) {
  if (kind == ThreadKind::kStream) return "write_signal";
  return releases ? "notify" : after_reads ? "signal_after_reads" : "signal";
}

}  // namespace

sim::Message Detector::send(Parcel parcel) {
  auto shared = std::make_shared<Parcel>(std::move(parcel));
  if (free_parcels_.empty()) {
    parcels_.push_back(std::move(shared));
    return static_cast<sim::Message>(parcels_.size() - 1);
  }
  const sim::Message message = free_parcels_.back();
  free_parcels_.pop_back();
  parcels_[message] = std::move(shared);
  return message;
}

/// A word that is set has one writer at a time. Many may add to a count, through a NIC or within its node. Both at once
/// are a race, since a NIC's addition is not atomic with a GPU's.
void Detector::note_writer(sim::Thread id, const void* address, Writer next, std::uint32_t number) {
  const ThreadState& thread = of(id);
  next.issued = {thread.slot, thread.now.of(thread.slot)};
  next.info = number;
  next.occurrence = infos_[number].times;
  Word& word = words_[address];
  std::erase_if(word.writers, [&](const Writer& writer) {
    // A block's changes of one word are seen in their order, its roles' too.
    if (thread.now.covers(writer.stamp)) return true;
    if (block_of(owners_[writer.issued.slot]) == block_of(id) && thread.now.covers(writer.issued)) return true;
    if (!next.sets && !writer.sets && next.through_nic == writer.through_nic) return false;
    report_signal_race(writer, next, address);
    return true;
  });
  word.writers.push_back(next);
}

Record Detector::atomic_record(Stamp stamp, std::uint32_t number, Role role, Scope scope, const void* address,
                               int bytes) {
  Record record{stamp, number, role, false, false, scope};
  record.word_bytes = static_cast<std::uint8_t>(bytes);
  record.word_offset = static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(address) % 8);
  return record;
}

void Detector::record_signal(sim::Thread id, const Signal* word, Role role, Stamp stamp, std::uint32_t number) {
  NewAccess next;
  next.record = atomic_record(stamp, number, role, Scope::kSystem, word, sizeof(Signal));
  next.after = &of(id).now;
  next.over = &of(id).over;
  record(id, word, sizeof(Signal), next);
}

sim::Message Detector::signal(sim::Thread id, const sim::SignalUpdate& update, Order order, int target, bool reachable,
                              Site site) {
  ThreadState& thread = of(id);
  prune(thread);
  const bool releases = order == Order::kRelease || order == Order::kAcqRel;
  Parcel parcel;
  parcel.released = releases ? ordered_before_notify(thread, target, reachable) : ordered_before_signal(thread, target);
  if (releases || update.after_reads) parcel.sent = thread.over;
  if (update.after_reads) {
    parcel.sent.reads.join(thread.now);
    parcel.sent.packets_read.join(thread.now);
  }
  if (!releases) parcel.knew = thread.now;
  parcel.issued = {thread.slot, thread.now.of(thread.slot)};
  parcel.issuer = id;
  parcel.through_nic = !reachable;
  parcel.info = info(id, signal_name(thread.kind, releases, update.after_reads), site);
  parcel.occurrence = infos_[parcel.info].times;
  parcel.release = releases             ? Parcel::Release::kEverything
                   : update.after_reads ? Parcel::Release::kReads
                                        : Parcel::Release::kNothing;
  note_writer(id, update.word,
              {.stamp = parcel.issued,
               .value = update.value,
               .sets = update.op == SignalOp::kSet,
               .through_nic = parcel.through_nic},
              parcel.info);
  record_signal(id, update.word, Role::kAtomicWrite, parcel.issued, parcel.info);
  advance(thread);
  return send(std::move(parcel));
}

void Detector::begin_entries(Word& word, Epoch value) const {
  static const auto nothing = std::make_shared<const Parcel>();
  if (word.entries.empty()) word.entries.push_back({value, nothing});
}

void Detector::add_entry(Word& word, Epoch value, std::shared_ptr<const Parcel> parcel) {
  word.entries.push_back({value, std::move(parcel)});
  if (word.entries.size() > kMostEntries) word.entries.pop_front();
}

void Detector::forget_entries(const void* address, Size bytes) {
  const auto* const begin = static_cast<const std::byte*>(address);
  for (auto at = words_.lower_bound(begin - sizeof(Signal) + 1); at != words_.end() && at->first < begin + bytes; ++at)
    at->second.entries.clear();
}

void Detector::allocated(const void* begin, Size bytes) { forget_entries(begin, bytes); }

Detector::Entries::const_iterator Detector::first_visible(const Entries& entries, const ThreadState& thread) const {
  const auto is_over = [&](const Entry& entry) {
    const Parcel& change = *entry.parcel;
    Stamp over = change.issued;
    if (change.through_nic) {  // it arrives some time before quiet
      const auto& quiets = of(change.issuer).quiets;
      const auto quiet = std::lower_bound(quiets.begin(), quiets.end(), over.tick);
      if (quiet == quiets.end()) return false;
      over.tick = *quiet;
    }
    return thread.now.covers(over);
  };
  const auto last = std::find_if(entries.rbegin(), entries.rend(), is_over);
  return last == entries.rend() ? entries.begin() : std::prev(last.base());
}

void Detector::signal_arrives(sim::Message message, const sim::SignalUpdate& update) {
  const std::shared_ptr<Parcel> parcel = std::exchange(parcels_[message], nullptr);
  free_parcels_.push_back(message);
  Word& word = words_[update.word];
  begin_entries(word, update.word->value);
  // Additions continue the release sequence; a set starts another.
  if (update.op == SignalOp::kAdd && reaches(*word.entries.back().parcel, parcel->issuer, parcel->scope)) {
    parcel->released.join(word.entries.back().parcel->released);
    parcel->sent.join(word.entries.back().parcel->sent);
  }
  add_entry(word, update.op == SignalOp::kSet ? update.value : update.word->value + update.value, parcel);
}

void Detector::begin_wait(sim::Thread id, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Site site) {
  of(id).waiting = {words, n, stride, cmp, value, info(id, "wait", site), ++waits_};
}

void Detector::polls_for_ever(sim::Thread id, const sim::Look& look, Site site) {
  of(id).waiting = {static_cast<const Signal*>(look.word), 1,        1,          look.cmp, look.value,
                    info(id, look.operation, site),        ++waits_, look.bytes, true};
}

void Detector::acquire(ThreadState& thread, const Carried& carried, bool proxy_fence) {
  thread.now.join(carried.released);
  thread.over.join(carried.sent);
  // Everything that it comes after is over, since this thread sends nothing before the wait ends.
  thread.over.reads.join(carried.released);
  thread.over.writes.join(carried.released);
  if (proxy_fence) thread.tensor.join(carried.released);
}

void Detector::remember(ThreadState& thread, Acquired acquired) {
  thread.acquired.push_back(std::move(acquired));
  if (thread.acquired.size() > kMostAcquired) thread.acquired.pop_front();
}

void Detector::end_wait(sim::Thread id, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order,
                        bool proxy_fence, Site site) {
  ThreadState& thread = of(id);
  const std::uint32_t number = thread.waiting ? thread.waiting->info : info(id, "signal_test", site);
  thread.waiting.reset();
  std::vector<Carried> gained;  // by all words together: they are looked at in no order
  for (Size i = 0; i < n; ++i) {
    const Signal* const word = words + i * stride;
    record_signal(id, word, Role::kAtomicRead, {thread.slot, thread.now.of(thread.slot)}, number);
    const auto found = words_.find(word);
    if (found == words_.end()) continue;
    const auto& entries = found->second.entries;
    const auto satisfies = [&](const Entry& entry) { return compare(entry.value, cmp, value); };
    const auto reaches_here = [&](const Entry& entry) { return reaches(*entry.parcel, id, Scope::kSystem); };
    // Timing proves nothing: the wait may have gone on with any value that satisfies it.
    const auto visible = first_visible(entries, thread);
    Acquired acquired{{}, order == Order::kRelaxed, word, cmp, value, number, infos_[number].times};
    std::copy_if(visible, entries.end(), std::back_inserter(acquired.passed), satisfies);
    if (acquired.passed.empty()) continue;
    if (order != Order::kRelaxed) gained.push_back(weakest(acquired.passed, reaches_here));
    remember(thread, std::move(acquired));
  }
  for (const Carried& carried : gained) acquire(thread, carried, proxy_fence);
}

}  // namespace tandem::checker
