#pragma once
/// The recorder of a world's work on CPUs. All PEs of a computer read the same clock; those of other hosts are
/// compared.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/recording.h"
#include "world/device/profiler.h"

namespace tandem::host {

/// An item of a stream's work. The thread that runs it fills in the records.
struct RecordedWork {
  trace::GpuWork drawn;
  GridRecords records;
};

class HostProfiler final : public world::Profiler {
 public:
  explicit HostProfiler(const world::ProfilerSetup& setup);

  /// Notes work of PE `number` that the caller enqueues next in `stream`, and returns the place of its records. Returns
  /// null if the PE's work is not recorded at present, or if there is no room.
  RecordedWork* note(int number, const void* stream, trace::GpuWork work, int blocks);
  /// These two note the order that events give.
  void note_record(int number, const void* stream, const detail::EventState* event);
  void note_wait(int number, const void* stream, const detail::EventState* event);

  void turn(int number, bool on) override;
  /// The first call agrees on the beginning, which is PE 0's. Clocks of hosts are compared in each.
  void align() override;
  trace::GpuPart part() const override;
  void add(std::vector<trace::GpuPart> parts) override;
  const trace::Timeline& timeline() override;
  const ProfileInfo& info() override;
  double time_us() const override;

 private:
  struct Pe {
    mutable std::mutex mutex;
    bool is_on = true;
    Size used = 0;                  // records for which there may be room needed
    std::deque<RecordedWork> work;  // items stay where they are
    Size lost_work = 0;
    /// The work for which the next work has to wait, of each stream and of each recorded event.
    std::map<const void*, std::vector<std::size_t>> ends;
    std::map<const detail::EventState*, std::vector<std::size_t>> events;
  };

  Pe& pe(int number) const { return *pes_[static_cast<std::size_t>(number)]; }
  void convert();

  const int operations_;
  const Size room_;  // records of a PE
  const std::string machine_;
  const world::AddressBook book_;
  const std::function<std::vector<std::uint64_t>(std::uint64_t)> numbers_;
  const std::function<std::vector<trace::ClockOffset>()> compare_hosts_;
  std::vector<trace::ClockOffset> first_offsets_, last_offsets_;  // by PE, from PE 0's clock; empty: there is one clock
  std::uint64_t began_ = 0;                                       // by PE 0's clock
  std::int64_t ahead_ns_ = 0;                                     // this host's clock at first, minus PE 0's
  std::vector<std::unique_ptr<Pe>> pes_;                          // null: another process's
  std::vector<trace::GpuPart> others_;
  bool is_converted_ = false;
  trace::Timeline timeline_;
  ProfileInfo info_;
};

}  // namespace tandem::host
