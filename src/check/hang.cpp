/// The causes of hangs.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/detector.h"
#include "sim/memory/signals.h"

namespace tandem::checker {

/// Which PE changed a word last, or sent packets there; -1: none.
int Detector::last_writer(int pe, Size offset, bool packet) const {
  int writer = -1;
  const auto is_by = [&](const Record& record) { writer = of(owners_[record.stamp.slot]).pe; };
  shadows_[static_cast<std::size_t>(pe)].visit({offset, offset + 1}, [&](const Cell& cell) {
    if (packet && cell.write.packet) is_by(cell.write);
    for (const Record& other : cell.others)
      if (!packet && other.role == Role::kAtomicWrite) is_by(other);
  });
  return writer;
}

void Detector::name_writer(Blocked& blocked) const {
  if (!memory_->owns(blocked.word)) return;
  const bool packet = of(blocked.thread).waiting->n == 0;
  const int pe = memory_->pe_of(blocked.word);
  const Size offset = memory_->offset_of(blocked.word);
  blocked.writer = last_writer(pe, offset, packet);
  blocked.certain = blocked.writer >= 0;
  if (blocked.certain) return;
  std::vector<std::pair<int, int>> examples;
  for (int other = 0; other < static_cast<int>(shadows_.size()); ++other)
    if (const int writer = last_writer(other, offset, packet); writer >= 0) examples.emplace_back(other, writer);
  blocked.writer = sim::likely_writer(examples, pe, static_cast<int>(shadows_.size()));
}

std::vector<Detector::Blocked> Detector::blocked() const {
  std::vector<Blocked> all;
  for (sim::Thread id = 0; id < threads_.size(); ++id) {
    const auto& waiting = of(id).waiting;
    if (!waiting) continue;
    Blocked one{id, waiting->words};
    for (Size i = 0; i < waiting->n && !waiting->polls; ++i) {
      one.word = waiting->words + i * waiting->stride;
      if (!compare(one.word->value, waiting->cmp, waiting->value)) break;
    }
    name_writer(one);
    all.push_back(one);
  }
  // The longest wait is for the lost signal; the other threads wait because of it.
  std::sort(all.begin(), all.end(), [&](const Blocked& a, const Blocked& b) {
    return of(a.thread).waiting->number < of(b.thread).waiting->number;
  });
  return all;
}

/// Describes the value of an awaited word, and the value that would end the wait.
std::string Detector::found_by(const Blocked& blocked) const {
  const Waiting& waiting = *of(blocked.thread).waiting;
  if (waiting.n == 0) return "packets whose flags never come";
  Epoch found = 0;
  std::memcpy(&found, blocked.word, static_cast<std::size_t>(waiting.bytes));
  std::string text =
      fmt::format("{} is {}, the {} needs {} {}", memory_->describe(blocked.word), found,
                  waiting.polls ? "loop that polls it" : "wait", sim::symbol(waiting.cmp), waiting.value);
  if (!waiting.polls && compare(found, waiting.cmp, waiting.value))
    text += ", which a plain store brought: only signals and atomics of 8 bytes let a wait go on";
  return text;
}

Finding Detector::explain_hang(const std::string& report) const {
  Finding finding;
  finding.kind = "hang";
  if (endless_ != 0) {
    finding.sites = {site(endless_, infos_[endless_].times)};
    finding.pes = {finding.sites[0].pe};
    finding.missing = report;
    return finding;
  }
  const std::vector<Blocked> all = blocked();
  const auto waits = [&](int pe) {
    return std::any_of(all.begin(), all.end(), [&](const Blocked& one) { return of(one.thread).pe == pe; });
  };
  // The root is a wait for a PE that waits for no PE; else the first wait of a cycle.
  auto root =
      std::find_if(all.begin(), all.end(), [&](const Blocked& one) { return one.writer >= 0 && !waits(one.writer); });
  const bool cycle = root == all.end();
  if (cycle) root = all.begin();
  if (root == all.end()) {
    finding.missing = "nothing can go on:\n" + report;
    return finding;
  }
  const Waiting& waiting = *of(root->thread).waiting;
  finding.sites = {site(waiting.info, infos_[waiting.info].times)};
  finding.signal = memory_->describe(root->word);
  finding.pes = {of(root->thread).pe};
  const std::string found = found_by(*root);
  if (waiting.n > 0 && waiting.cmp == Cmp::kEq && root->word->value > waiting.value) {
    finding.missing = fmt::format(
        "{}: it grew past that value before the wait looked; with more than one signal under way compare by >= and "
        "give each chunk a word of its own, or wait for the sum\n{}",
        found, report);
    return finding;
  }
  if (root->writer < 0) {
    finding.missing =
        fmt::format("{}: {}\n{}", waiting.polls ? "no signal ever changed it" : "no PE ever wrote it", found, report);
    return finding;
  }
  finding.pes.insert(finding.pes.begin(), root->writer);
  const auto last = words_.find(root->word);
  if (last != words_.end() && last->second.entries.size() > 1)
    finding.sites.insert(finding.sites.begin(), site(last->second.entries.back().parcel->info,
                                                     last->second.entries.back().parcel->occurrence));
  finding.missing = fmt::format(
      "{}{} of PE {}: {}; {}\n{}", root->certain ? "" : "probably ", waiting.n == 0 ? "packets" : "a signal",
      root->writer, found,
      cycle ? "all others wait in a cycle that begins there"
            : fmt::format("PE {} waits for no PE{}", root->writer, root->certain ? " and sends no more" : ""),
      report);
  return finding;
}

}  // namespace tandem::checker
