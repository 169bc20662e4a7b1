#include "trace/gpu/gpu_work_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "tandem/signal.h"

namespace tandem::trace {

namespace {

using cuda::Record;

constexpr Time kNever = std::numeric_limits<Time>::max();
/// The start of a copy counts as this many bytes: 2.5 us at 400 GB/s.
constexpr double kStartBytes = 1e6;

bool has_records(const GpuWork& work) {
  return std::any_of(work.blocks.begin(), work.blocks.end(), [](const auto& block) { return !block.empty(); });
}

class Times {
 public:
  explicit Times(const GpuProfile& profile) : profile_(profile), times_(profile.work.size()) {}

  std::vector<GpuWorkTime> run() {
    for (std::size_t i = 0; i < times_.size(); ++i)
      if (has_records(work(i))) times_[i] = of_blocks(work(i));
    note_waits();
    latest_.assign(times_.size(), kNever);
    chain_of_.assign(times_.size(), 0);
    for (std::size_t i = 0; i < times_.size(); ++i) has_records(work(i)) ? bound_earlier(i) : add_to_chain(i);
    for (const std::vector<std::size_t>& chain : chains_) share(chain);
    return std::move(times_);
  }

 private:
  const GpuWork& work(std::size_t i) const { return profile_.work[i]; }

  GpuWorkTime of_blocks(const GpuWork& kernel) const {
    GpuWorkTime time{true, kNever, 0};
    for (const auto& block : kernel.blocks) {
      if (block.empty()) continue;
      time.begin = std::min(time.begin, profile_.time(kernel.pe, block.front().begin));
      time.end = std::max(time.end, profile_.time(kernel.pe, block.front().begin + block.front().duration));
    }
    return time;
  }

  /// Collects the ends of the waits for each word.
  void note_waits() {
    for (const GpuWork& kernel : profile_.work)
      for (const auto& block : kernel.blocks)
        for (const Record& record : block) {
          if (record.kind != cuda::RecordKind::kWait) continue;
          const GpuPlace place = profile_.place(record.address);
          for (Size i = 0; i < record.count; ++i)
            waits_[{place.pe, place.offset + i * Size{sizeof(Signal)}}].push_back(
                profile_.time(kernel.pe, record.begin + record.duration));
        }
    for (auto& [word, ends] : waits_) std::sort(ends.begin(), ends.end());
  }

  /// The predecessors of recorded work were over when it began.
  void bound_earlier(std::size_t i) {
    for (const std::size_t before : work(i).after)
      if (!has_records(work(before))) latest_[before] = std::min(latest_[before], times_[i].begin);
  }

  /// A chain continues if no record gives the begin of its next item.
  void add_to_chain(std::size_t i) {
    const std::vector<std::size_t>& after = work(i).after;
    const bool goes_on = after.size() == 1 && !has_records(work(after[0])) && work(after[0]).stream == work(i).stream;
    chain_of_[i] = goes_on ? chain_of_[after[0]] : chains_.size();
    if (!goes_on) chains_.emplace_back();
    chains_[chain_of_[i]].push_back(i);
  }

  void share(const std::vector<std::size_t>& chain) {
    Time begin = 0;
    for (const std::size_t before : work(chain.front()).after)
      if (times_[before].known) begin = std::max(begin, times_[before].end);
    bound_by_waits(chain, begin);
    for (std::size_t k = chain.size() - 1; k-- > 0;)
      latest_[chain[k]] = std::min(latest_[chain[k]], latest_[chain[k + 1]]);
    const Time end = latest_[chain.back()];
    if (begin == 0 || end == kNever || latest_[chain.front()] < begin) return;
    double whole = 0;
    for (const std::size_t i : chain) whole += weight(work(i));
    double done = 0;
    Time last = begin;
    for (const std::size_t i : chain) {
      done += weight(work(i));
      const Time in_turn = begin + static_cast<Time>(static_cast<double>(end - begin) * (done / whole));
      times_[i] = {true, last, std::min(in_turn, latest_[i])};
      last = times_[i].end;
    }
  }

  static double weight(const GpuWork& piece) { return static_cast<double>(piece.bytes) + kStartBytes; }

  /// A signal had arrived when the first wait ended that may have waited for it.
  void bound_by_waits(const std::vector<std::size_t>& chain, Time begin) {
    std::map<std::uint64_t, Time> last;  // by word
    for (const std::size_t i : chain) {
      if (work(i).signal == 0) continue;
      const GpuPlace place = profile_.place(work(i).signal);
      const auto waits = waits_.find({place.pe, place.offset});
      if (waits == waits_.end()) continue;
      Time& before = last.try_emplace(work(i).signal, begin).first->second;
      const auto first = std::upper_bound(waits->second.begin(), waits->second.end(), before);
      if (first == waits->second.end()) continue;
      before = *first;
      latest_[i] = std::min(latest_[i], *first);
    }
  }

  const GpuProfile& profile_;
  std::vector<GpuWorkTime> times_;
  std::map<std::pair<int, Size>, std::vector<Time>> waits_;  // by word
  std::vector<Time> latest_;                                 // the latest possible end of work without records
  std::vector<std::size_t> chain_of_;
  std::vector<std::vector<std::size_t>> chains_;
};

}  // namespace

std::vector<GpuWorkTime> work_times(const GpuProfile& profile) { return Times(profile).run(); }

}  // namespace tandem::trace
