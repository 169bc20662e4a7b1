/// The texts of findings.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/detector.h"
#include "check/mutants.h"
#include "tandem/error.h"

namespace tandem::checker {

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

CheckSite Detector::site(std::uint32_t number, int occurrence) const {
  const Info& facts = infos_[number];
  return {.file = short_path(facts.site.file),
          .line = facts.site.line,
          .operation = facts.operation,
          .who = who(facts.thread, facts.kernel),
          .pe = of(facts.thread).pe,
          .launch = facts.launch,
          .occurrence = occurrence,
          .time_us = sim::to_us(facts.last)};
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
  finding.sites = {site(conflict.first.info, conflict.first.occurrence),
                   site(access.record.info, access.record.occurrence)};
  if (!is_new(finding)) return;
  finding.pes = {finding.sites[0].pe};
  if (finding.sites[1].pe != finding.sites[0].pe) finding.pes.push_back(finding.sites[1].pe);
  const bool is_signal = is_of_signal(conflict.first) || is_of_signal(access.record);
  (is_signal ? finding.signal : finding.buffer) = place(address, conflict.bytes);
  finding.missing = missing(conflict.first, id, access);
  findings_.push_back(std::move(finding));
}

/// Reports the access. The run goes on in another buffer if there is memory, as on GPUs.
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
      "no PE has written these bytes: a write before the read (zeros for what is added to), or a read of as many "
      "elements as were sent";
  if (is_new(finding)) findings_.push_back(finding);
}

void Detector::report_before_epoch(std::uint32_t number) {
  Finding finding;
  finding.kind = "before_epoch";
  finding.sites = {site(number)};
  finding.pes = {finding.sites[0].pe};
  finding.missing =
      "`next_epoch` before it: the kernel has kEpochFirst, so that on a GPU it may run beside the stream's last kernel "
      "until then";
  if (is_new(finding)) findings_.push_back(std::move(finding));
}

void Detector::report_signal_race(const Writer& first, const Writer& second, const void* word) {
  Finding finding;
  finding.kind = "signal_race";
  finding.sites = {site(first.info, first.occurrence), site(second.info, second.occurrence)};
  if (!is_new(finding)) return;
  finding.pes = {finding.sites[0].pe};
  if (finding.sites[1].pe != finding.sites[0].pe) finding.pes.push_back(finding.sites[1].pe);
  finding.signal = place(word, {0, sizeof(Signal)});
  const auto change = [](const Writer& writer) {
    return fmt::format("{} {}", writer.sets ? "the SET to" : "the ADD or atomic with", writer.value);
  };
  const bool both_add = !first.sets && !second.sets;
  finding.missing = fmt::format(
      "nothing orders {} and {}: {}", change(first), change(second),
      both_add
          ? "one of them comes through a NIC, whose additions are not atomic with those of the node; give PEs of "
            "other nodes a word of their own"
          : "the later value may be lost; give each writer (and each operator) a word of its own, or let both add");
  findings_.push_back(std::move(finding));
}

}  // namespace tandem::checker
