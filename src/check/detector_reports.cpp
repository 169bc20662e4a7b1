/// What findings say.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/detector.h"
#include "check/mutants.h"
#include "tandem/error.h"

namespace tandem::checker {

namespace {

bool is_write(Role role) { return role == Role::kWrite || role == Role::kAtomicWrite || role == Role::kReduction; }
bool is_atomic(Role role) { return role == Role::kAtomicRead || role == Role::kAtomicWrite; }

}  // namespace

std::string Detector::who(sim::Thread id, const std::string& kernel) const {
  const ThreadState& thread = of(id);
  switch (thread.kind) {
    case ThreadKind::kHost:
      return fmt::format("PE {} host program", thread.pe);
    case ThreadKind::kStream:
      return fmt::format("PE {} stream {}", thread.pe, thread.name);
    case ThreadKind::kBlock:
      return fmt::format("PE {} block {} of {}", thread.pe, thread.index, kernel);
    case ThreadKind::kRole:
      return fmt::format("PE {} block {} role {} of {}", thread.pe, of(thread.parent).index, thread.index, kernel);
  }
  return {};
}

CheckSite Detector::site(std::uint32_t number) const {
  const Info& told = infos_[number];
  return {short_path(told.site.file),    told.site.line,     told.operation,
          who(told.thread, told.kernel), of(told.thread).pe, sim::to_us(told.last)};
}

std::string Detector::place(const void* address, Range bytes) const {
  return memory_->describe_range(address, bytes.size());
}

bool Detector::is_new(const Finding& finding) {
  std::string key = finding.kind;
  for (const CheckSite& at : finding.sites) key += fmt::format("|{}:{}:{}", at.file, at.line, at.operation);
  return seen_.insert(key).second;
}

std::string Detector::kind_of(const Record& first, const Record& second) const {
  const bool same_issuer = owners_[first.stamp.slot] == owners_[second.stamp.slot];
  if (first.role == Role::kRead && first.transfer && same_issuer) return "source_reuse";
  if (!is_write(first.role)) return "write_before_read_is_over";
  if (!is_write(second.role)) return "read_before_write_is_visible";
  return "unordered_writes";
}

void Detector::report_conflict(sim::Thread id, const void* address, const NewAccess& access, const Conflict& conflict) {
  Finding finding;
  finding.kind = kind_of(conflict.first, access.record);
  finding.sites = {site(conflict.first.info), site(access.record.info)};
  if (!is_new(finding)) return;
  finding.pes = {finding.sites[0].pe};
  if (finding.sites[1].pe != finding.sites[0].pe) finding.pes.push_back(finding.sites[1].pe);
  const bool is_signal = is_atomic(conflict.first.role) || is_atomic(access.record.role);
  (is_signal ? finding.signal : finding.buffer) = place(address, conflict.bytes);
  finding.missing = missing(conflict.first, id, access, is_signal);
  findings_.push_back(std::move(finding));
}

/// The run goes on where there is memory, as on GPUs: in somebody else's buffer.
void Detector::report_out_of_bounds(const void* address, Size bytes, std::uint32_t number) {
  Finding finding;
  const bool freed = memory_->was_freed(address);
  finding.kind = freed ? "use_after_free" : "out_of_bounds";
  finding.sites = {site(number)};
  finding.pes = {finding.sites[0].pe};
  finding.buffer = memory_->describe_range(address, bytes);
  finding.missing =
      freed ? "the buffer was freed before: its free must follow all work that uses it, on every PE"
            : fmt::format("{} bytes do not lie within one buffer of that PE{}: a larger allocation, or a smaller count",
                          bytes, memory_->describe_size(address));
  if (is_new(finding)) findings_.push_back(finding);
  if (!memory_->holds(address, bytes))
    throw CheckFailed(fmt::format("{} of {} bytes at {} goes beyond that PE's memory", finding.sites[0].operation,
                                  bytes, finding.buffer));
}

void Detector::report_uninitialised(const void* address, Size bytes, std::uint32_t number) {
  Finding finding;
  finding.kind = "uninitialised_read";
  finding.sites = {site(number)};
  finding.pes = {finding.sites[0].pe};
  finding.buffer = memory_->describe_range(address, bytes);
  finding.missing =
      "nobody has written these bytes: a write before the read (zeros for what is added to), or a read of as many "
      "elements as were sent";
  if (is_new(finding)) findings_.push_back(finding);
}

void Detector::report_signal_race(const Writer& first, sim::Thread id, std::uint32_t second, const void* word) {
  Finding finding;
  finding.kind = "signal_race";
  finding.sites = {site(first.info), site(second)};
  if (!is_new(finding)) return;
  finding.pes = {finding.sites[0].pe};
  if (of(id).pe != finding.sites[0].pe) finding.pes.push_back(of(id).pe);
  finding.signal = place(word, {0, sizeof(Signal)});
  finding.missing =
      "nothing orders the two changes of the word, one of which sets it: the later value may be lost; give each writer "
      "(and each operator) a word of its own, or let both add";
  findings_.push_back(std::move(finding));
}

/// A signal that the thread waited for and that `first`'s issuer sent after it.
const Acquired* Detector::signal_after(const ThreadState& thread, const Info& first, Stamp stamp) const {
  const AgentSlot& agent = agent_slots_[stamp.slot];
  const bool is_agent = agent.tick > 0;
  for (auto at = thread.acquired.rbegin(); at != thread.acquired.rend(); ++at) {
    if (at->from->issuer != first.thread) continue;
    if (is_agent ? at->from->issued.tick >= agent.issued.tick : true) return &*at;
  }
  return nullptr;
}

/// The missing order between two accesses of one thread, one of which goes on beside it.
std::string Detector::missing_within(const Record& first, const Record& second) const {
  const Info& told = infos_[first.info];
  if (first.role == Role::kRead)
    return fmt::format("`quiet` between {} and the write to its source: the source must stay as it is until then",
                       told.operation);
  if (told.is_get) return fmt::format("`quiet` between {} and the use of what it brings", told.operation);
  if (is_write(second.role))
    return fmt::format("`fence` (same PE) or `quiet` between the two writes: a {} has no order with what follows",
                       told.operation);
  return fmt::format("`quiet` between {} and the read of its target", told.operation);
}

std::string Detector::missing(const Record& first, sim::Thread id, const NewAccess& second, bool is_signal) const {
  const ThreadState& thread = of(id);
  const Info& told = infos_[first.info];
  const Info& now = infos_[second.record.info];
  if (second.after == &thread.tensor && thread.now.covers(first.stamp))
    return "the cross-proxy fence between the wait and the read by the tensor-memory engine: `consume_token`, or the "
           "GEMM's gate";
  if (owners_[first.stamp.slot] == id) return missing_within(first, second.record);
  if (is_atomic(first.role) && is_atomic(second.record.role))
    return "a scope that reaches both: Scope::kGpu between blocks of one PE, Scope::kSystem between PEs";
  if (is_signal && !is_write(second.record.role))
    return "a load of a flag acquires nothing: read it by `wait`, `signal_wait_until` or `signal_test`";
  if (is_signal)
    return "a signal word is written by signal operations alone: it only grows and needs no reset, or the reset must "
           "be ordered with every signal and wait by a barrier before and after it";
  const Acquired* const after = signal_after(thread, told, first.stamp);
  if (after != nullptr) {
    const CheckSite from = site(after->from->info);
    const std::string where = fmt::format("{} at {}:{}", from.operation, from.file, from.line);
    if (after->relaxed) return fmt::format("the wait for the {} is relaxed: an acquiring `wait`", where);
    if (after->from->release == Parcel::Release::kNothing)
      return fmt::format(
          "the {} is relaxed: `fence` (same PE) or `quiet` before it, or `notify` or `put_signal` in "
          "its place",
          where);
    if (after->from->release == Parcel::Release::kReads)
      return fmt::format("the {} tells that reads are over, and orders no stores: `notify` in its place", where);
    if (after->from->release == Parcel::Release::kOwnData)
      return fmt::format("the {} orders its own data only: `fence` or `quiet` before it, or `notify`", where);
    if (told.transfer)
      return fmt::format("the {} orders puts through a NIC to its own PE only: `quiet` before it", where);
  }
  if (told.transfer && told.nonblocking && first.role == Role::kRead)
    return fmt::format("`quiet` after {} before anybody is told that its source may be written", told.operation);
  if (of(told.thread).pe == thread.pe && !told.transfer)
    return fmt::format("order between {} and {}: the same stream, an event, a join of roles or a signal",
                       who(told.thread, told.kernel), who(now.thread, now.kernel));
  if (!is_write(first.role))
    return "the writer must know that the read is over: `notify` after the read and `wait` before the write (or "
           "another slot of the buffer, by epoch parity or credits)";
  if (!is_write(second.record.role))
    return "the reader must wait for a signal that the writer sends after the data: `put_signal`, `notify`, or "
           "`signal` "
           "after `fence`; then `wait`";
  return "the second writer must wait for a signal that follows the first write, or write elsewhere";
}

}  // namespace tandem::checker
