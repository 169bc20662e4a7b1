#pragma once
/// The recorder of a world's work on its GPUs. It hands out room for the records of kernels, puts stamps around other
/// work, and makes a timeline of it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda/profile/clock_alignment.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/record.h"
#include "tandem/stream.h"
#include "world/device/profiler.h"

namespace tandem::cuda {

/// A PE's stream, with the name under which its work is recorded.
struct ProfiledStream {
  int pe;
  cudaStream_t stream;
  const std::string& name;
};

/// Host programs of several PEs use it concurrently, each for its own PE. `align` and `timeline` are called while
/// nothing runs.
class Profiler final : public world::Profiler {
 public:
  explicit Profiler(const world::ProfilerSetup& setup);
  ~Profiler() override;
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Returns whether a PE's work is recorded at present; it is from the start.
  bool is_on(int number) const;
  void turn(int number, bool on) override;

  /// Launches the recording form of a kernel if it has one, else the usual one, of which only the time is known.
  void launch(const ProfiledStream& stream, const detail::KernelLaunch& kernel, detail::DeviceLaunch launch);
  /// Returns room for the records of at most `blocks` blocks of a kernel that records itself and that the caller
  /// enqueues next. Returns none if there is no room. Then only the kernel's time is known.
  RecordArea note_kernel(const ProfiledStream& stream, const std::string& name, const Team& team, int blocks);
  void write_signal(const ProfiledStream& stream, Signal* word, Epoch value);
  void wait_signal(const ProfiledStream& stream, const Context& context, const Signal* word, Epoch value);
  /// Notes work without records, which the caller enqueues next.
  void note_work(const ProfiledStream& stream, const std::string& name, trace::SpanKind kind, Size bytes);

  /// Notes a signal that a copy writes, which the caller enqueues next.
  void note_copied_signal(const ProfiledStream& stream, const Signal* word);
  /// Notes that the copy, or the copied signal, is enqueued.
  void note_copy_end(const ProfiledStream& stream);

  /// These two note the order that events give.
  void note_record(const ProfiledStream& stream, const detail::EventState* event);
  void note_wait(const ProfiledStream& stream, const detail::EventState* event);
  /// Notes the stream's end, before the host waits for it.
  void note_synchronize(const ProfiledStream& stream);

  void align() override;
  trace::GpuPart part() const override;
  void add(std::vector<trace::GpuPart> parts) override;
  const trace::Timeline& timeline() override;
  const ProfileInfo& info() override;
  double time_us() const override { return clocks_.time_us(); }

 private:
  struct Work;
  struct Pe;

  Pe& pe(int number) const { return *pes_[static_cast<std::size_t>(number)]; }
  RecordArea take_area(Pe& own, int blocks, int stride) const;
  void add(const ProfiledStream& stream, trace::GpuWork work, const RecordArea& area, int blocks);
  void stamp(const ProfiledStream& stream);
  void note(const ProfiledStream& stream, trace::GpuWork work);
  void collect(const Pe& own, trace::GpuPart& part) const;
  void convert();

  const int operations_;
  const bool time_copies_;
  const std::string machine_;
  const world::AddressBook book_;
  std::vector<std::unique_ptr<Pe>> pes_;  // null: another process's
  std::vector<trace::GpuPart> others_;
  Clocks clocks_;
  bool converted_ = false;
  trace::Timeline timeline_;
  ProfileInfo info_;
};

}  // namespace tandem::cuda
