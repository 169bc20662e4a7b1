/// Who is to blame for a hang.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/detector.h"
#include "sim/signals.h"

namespace tandem::checker {

int Detector::expected_writer(const Signal* word) const {
  if (!memory_->owns(word)) return -1;
  if (const auto found = words_.find(word); found != words_.end() && found->second.entries.size() > 1)
    return of(found->second.entries.back().parcel->issuer).pe;
  // The same neighbour relation as for the same word of another PE.
  const auto example = example_writers_.find(memory_->offset_of(word));
  if (example == example_writers_.end()) return -1;
  const int n = static_cast<int>(shadows_.size());
  const auto [pe, writer] = example->second;
  return (memory_->pe_of(word) + writer - pe + n) % n;
}

std::vector<Detector::Blocked> Detector::blocked() const {
  std::vector<Blocked> all;
  for (sim::Thread id = 0; id < threads_.size(); ++id) {
    const auto& waiting = of(id).waiting;
    if (!waiting) continue;
    Blocked one{id, waiting->words, -1};
    for (Size i = 0; i < waiting->n; ++i) {
      one.word = waiting->words + i * waiting->stride;
      if (!compare(one.word->value, waiting->cmp, waiting->value)) break;
    }
    one.writer = expected_writer(one.word);
    all.push_back(one);
  }
  // Whoever waits longest waits for what is lost; the others wait because of it.
  std::sort(all.begin(), all.end(), [&](const Blocked& a, const Blocked& b) {
    return of(a.thread).waiting->number < of(b.thread).waiting->number;
  });
  return all;
}

Finding Detector::explain_hang(const std::string& report) const {
  Finding finding;
  finding.kind = "hang";
  const std::vector<Blocked> all = blocked();
  const auto waits = [&](int pe) {
    return std::any_of(all.begin(), all.end(), [&](const Blocked& one) { return of(one.thread).pe == pe; });
  };
  // A wait for somebody who waits for nobody; else the first wait of a cycle.
  auto root =
      std::find_if(all.begin(), all.end(), [&](const Blocked& one) { return one.writer >= 0 && !waits(one.writer); });
  const bool cycle = root == all.end();
  if (cycle) root = all.begin();
  if (root == all.end()) {
    finding.missing = "nothing can go on:\n" + report;
    return finding;
  }
  const Waiting& waiting = *of(root->thread).waiting;
  finding.sites = {site(waiting.info)};
  finding.signal = memory_->describe(root->word);
  finding.pes = {of(root->thread).pe};
  const std::string found = waiting.n == 0 ? std::string("packets whose flags never come")
                                           : fmt::format("{} is {}, the wait needs {} {}", finding.signal,
                                                         root->word->value, sim::symbol(waiting.cmp), waiting.value);
  if (waiting.n > 0 && waiting.cmp == Cmp::kEq && root->word->value > waiting.value) {
    finding.missing = fmt::format(
        "{}: it grew past that value before the wait looked; with more than one signal under way compare by >= and "
        "give "
        "each chunk a word of its own, or wait for the sum\n{}",
        found, report);
    return finding;
  }
  if (root->writer < 0) {
    finding.missing = fmt::format("nobody ever wrote it: {}\n{}", found, report);
    return finding;
  }
  finding.pes.insert(finding.pes.begin(), root->writer);
  const auto last = words_.find(root->word);
  if (last != words_.end() && last->second.entries.size() > 1)
    finding.sites.insert(finding.sites.begin(), site(last->second.entries.back().parcel->info));
  finding.missing = fmt::format("a signal of PE {}: {}; {}\n{}", root->writer, found,
                                cycle ? "all others wait in a cycle that begins there"
                                      : fmt::format("PE {} waits for nobody and sends no more", root->writer),
                                report);
  return finding;
}

}  // namespace tandem::checker
