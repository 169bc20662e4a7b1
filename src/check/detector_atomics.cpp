/// Atomics: what they carry, and whom their scopes reach.

#include "check/detector.h"

namespace tandem::checker {

sim::Thread Detector::block_of(sim::Thread thread) const {
  return of(thread).kind == ThreadKind::kRole ? of(thread).parent : thread;
}

bool Detector::reach_each_other(sim::Thread a, Scope scope_of_a, sim::Thread b, Scope scope_of_b) const {
  const auto has_both = [&](Scope scope) {
    if (scope == Scope::kBlock) return block_of(a) == block_of(b);
    return scope == Scope::kSystem || of(a).pe == of(b).pe;
  };
  return has_both(scope_of_a) && has_both(scope_of_b);
}

bool Detector::reaches(const Parcel& parcel, sim::Thread thread, Scope scope) const {
  return parcel.issuer == sim::kNoThread || reach_each_other(parcel.issuer, parcel.scope, thread, scope);
}

void Detector::atomic(sim::Thread id, const sim::AtomicAccess& access, Site site) {
  if (!memory_->owns(access.address)) return;
  ThreadState& thread = of(id);
  prune(thread);
  const int target = memory_->pe_of(access.address);
  const std::uint32_t number = info(id, "atomic", site);
  Word& word = words_[access.address];
  begin_entries(word, access.old);
  const Stamp stamp{thread.slot, thread.now.of(thread.slot)};
  const bool acquires = access.order == Order::kAcquire || access.order == Order::kAcqRel;
  const bool releases = access.order == Order::kRelease || access.order == Order::kAcqRel;
  Parcel parcel;
  const std::shared_ptr<const Parcel> last = word.entries.back().parcel;
  if (last->issuer != sim::kNoThread && last->word_bytes == access.bytes && reaches(*last, id, access.scope)) {
    if (acquires) acquire(thread, *last, false);
    remember(thread,
             {{word.entries.back()}, !acquires, access.address, Cmp::kEq, access.old, number, infos_[number].times});
    parcel.released = last->released;
    parcel.sent = last->sent;
  }
  NewAccess next;
  next.record = atomic_record(stamp, number, access.writes ? Role::kAtomicWrite : Role::kAtomicRead, access.scope,
                              access.address, access.bytes);
  next.after = &thread.now;
  next.over = &thread.over;
  check_written(access.address, &access.old, access.bytes, number);
  record(id, access.address, access.bytes, next);
  if (!access.writes) return;  // a compare_swap that failed is a load
  // It sees what it changes, so that nothing is lost among atomics; a signal that sets the word sees nothing.
  if (access.value != access.old)
    note_writer(id, access.address, {.stamp = stamp, .value = access.value, .sets = false}, number);
  parcel.released.join(releases ? ordered_before_notify(thread, target, true) : ordered_before_signal(thread, target));
  if (releases) parcel.sent.join(thread.over);
  if (!releases) parcel.knew = thread.now;
  parcel.issued = stamp;
  parcel.issuer = id;
  parcel.scope = access.scope;
  parcel.info = number;
  parcel.occurrence = infos_[number].times;
  parcel.word_bytes = access.bytes;
  parcel.release = releases ? Parcel::Release::kEverything : Parcel::Release::kNothing;
  add_entry(word, access.value, std::make_shared<const Parcel>(std::move(parcel)));
  advance(thread);
}

}  // namespace tandem::checker
