/// Signals: what they carry, what a wait gets out of them, and who may write a word.

#include <algorithm>

#include "check/detector.h"

namespace tandem::checker {

namespace {

/// Values of a word that are remembered: a wait acquires what came with every one that lets it go on, not with the one
/// that happened to be there.
constexpr std::size_t kMostEntries = 64;
/// Waits of a thread that are remembered, for reports.
constexpr std::size_t kMostAcquired = 16;

/// What all of the entries that satisfy a wait carry: any of them may have been the one that it saw.
template <class Entries, class Satisfies>
Parcel weakest(const Entries& entries, const Satisfies& satisfies) {
  Parcel all;
  bool is_first = true;
  for (const auto& entry : entries) {
    if (!satisfies(entry)) continue;
    if (is_first) all = *entry.parcel;
    if (!is_first) all.released.meet(entry.parcel->released);
    is_first = false;
  }
  return all;
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

/// A word that is set has one writer at a time; counts may be added to by many.
void Detector::note_writer(sim::Thread id, const sim::SignalUpdate& update, Stamp stamp, std::uint32_t number) {
  const ThreadState& thread = of(id);
  Word& word = words_[update.word];
  const bool sets = update.op == SignalOp::kSet;
  std::erase_if(word.writers, [&](const Writer& writer) {
    if (thread.now.covers(writer.stamp) || owners_[writer.stamp.slot] == id) return true;
    if (!sets && !writer.sets) return false;
    report_signal_race(writer, id, number, update.word);
    return true;
  });
  word.writers.push_back({stamp, number, sets});

  NewAccess next;
  next.record = {stamp, number, Role::kAtomicWrite, false, false};
  next.after = &thread.now;
  record(id, update.word, sizeof(Signal), next);
}

sim::Message Detector::signal(sim::Thread id, const sim::SignalUpdate& update, Order order, int target, bool reachable,
                              Site site) {
  ThreadState& thread = of(id);
  prune(thread);
  const bool releases = order == Order::kRelease || order == Order::kAcqRel;
  Parcel parcel;
  parcel.released = releases ? ordered_before_notify(thread, target, reachable) : ordered_before_signal(thread, target);
  if (releases) parcel.sent = thread.over;
  parcel.issued = {thread.slot, thread.now.of(thread.slot)};
  parcel.issuer = id;
  const char* const operation = thread.kind == ThreadKind::kStream ? "write_signal" : releases ? "notify" : "signal";
  parcel.info = info(id, operation, site);
  parcel.release = releases ? Parcel::Release::kEverything : Parcel::Release::kNothing;
  note_writer(id, update, parcel.issued, parcel.info);
  if (memory_->owns(update.word)) example_writers_.try_emplace(memory_->offset_of(update.word), target, thread.pe);
  advance(thread);
  return send(std::move(parcel));
}

void Detector::signal_arrives(sim::Message message, const sim::SignalUpdate& update) {
  const std::shared_ptr<Parcel> parcel = std::exchange(parcels_[message], nullptr);
  free_parcels_.push_back(message);
  Word& word = words_[update.word];
  Entry entry;
  entry.value = update.op == SignalOp::kSet ? update.value : update.word->value + update.value;
  // Additions continue the release sequence; a set begins another.
  if (update.op == SignalOp::kAdd && !word.entries.empty()) {
    parcel->released.join(word.entries.back().parcel->released);
    parcel->sent.join(word.entries.back().parcel->sent);
  }
  entry.parcel = parcel;
  word.entries.push_back(std::move(entry));
  if (word.entries.size() > kMostEntries) word.entries.pop_front();
}

void Detector::begin_wait(sim::Thread id, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Site site) {
  of(id).waiting = {words, n, stride, cmp, value, info(id, "wait", site), ++waits_};
}

void Detector::acquire(ThreadState& thread, const Parcel& parcel, bool proxy_fence) {
  thread.now.join(parcel.released);
  thread.over.join(parcel.sent);
  if (proxy_fence) thread.tensor.join(parcel.released);
}

void Detector::end_wait(sim::Thread id, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order,
                        bool proxy_fence, Site site) {
  ThreadState& thread = of(id);
  thread.waiting.reset();
  const bool grows = cmp == Cmp::kGe || cmp == Cmp::kGt;
  const std::uint32_t number = info(id, "wait", site);
  for (Size i = 0; i < n; ++i) {
    const Signal* const word = words + i * stride;
    NewAccess next;
    next.record = {{thread.slot, thread.now.of(thread.slot)}, number, Role::kAtomicRead, false, false};
    next.after = &thread.now;
    record(id, word, sizeof(Signal), next);
    const auto found = words_.find(word);
    if (found == words_.end()) continue;
    const auto& entries = found->second.entries;
    const auto satisfies = [&](const Entry& entry) { return compare(entry.value, cmp, value); };
    // Legality does not come from timing: the wait may have gone on with any value that it takes.
    const auto first = std::find_if(entries.begin(), entries.end(), satisfies);
    const auto last = std::find_if(entries.rbegin(), entries.rend(), satisfies);
    if (first == entries.end()) continue;
    const Entry& seen = grows ? *first : *last;
    if (order != Order::kRelaxed && grows)
      acquire(thread, weakest(entries, satisfies), proxy_fence);
    else if (order != Order::kRelaxed)
      acquire(thread, *seen.parcel, proxy_fence);
    thread.acquired.push_back({seen.parcel, order == Order::kRelaxed, number});
    if (thread.acquired.size() > kMostAcquired) thread.acquired.pop_front();
  }
}

void Detector::atomic(sim::Thread id, const void* address, int bytes, std::uint64_t value, Scope scope, Order order,
                      Site site) {
  if (!memory_->owns(address)) return;
  ThreadState& thread = of(id);
  prune(thread);
  const int target = memory_->pe_of(address);
  const std::uint32_t number = info(id, "atomic", site);
  Word& word = words_[address];
  const Stamp stamp{thread.slot, thread.now.of(thread.slot)};
  // An operation of a narrower scope has nothing to do with those of another PE.
  const bool within = scope == Scope::kSystem || target == thread.pe;
  const bool last_within = word.scope == Scope::kSystem || word.pe == thread.pe;
  const bool acquires = order == Order::kAcquire || order == Order::kAcqRel;
  const bool releases = order == Order::kRelease || order == Order::kAcqRel;
  Parcel parcel;
  if (!word.entries.empty() && within && last_within) {
    const Parcel& last = *word.entries.back().parcel;
    if (acquires) acquire(thread, last, false);
    thread.acquired.push_back({word.entries.back().parcel, !acquires, number});
    if (thread.acquired.size() > kMostAcquired) thread.acquired.pop_front();
    parcel.released = last.released;
    parcel.sent = last.sent;
  }
  parcel.released.join(releases ? ordered_before_notify(thread, target, true) : ordered_before_signal(thread, target));
  if (releases) parcel.sent.join(thread.over);
  parcel.issued = stamp;
  parcel.issuer = id;
  parcel.info = number;
  parcel.release = releases ? Parcel::Release::kEverything : Parcel::Release::kNothing;
  word.scope = scope;
  word.pe = thread.pe;
  word.entries.push_back({value, std::make_shared<Parcel>(std::move(parcel))});
  if (word.entries.size() > kMostEntries) word.entries.pop_front();
  NewAccess next;
  next.record = {stamp, number, within ? Role::kAtomicWrite : Role::kWrite, false, false};
  next.after = &thread.now;
  record(id, address, bytes, next);
  advance(thread);
}

}  // namespace tandem::checker
