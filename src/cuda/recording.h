#pragma once
/// Records what a world does on its GPUs: hands out room for the records of kernels, puts events around other work, and
/// makes a timeline of it.
///
/// Host programs of several PEs call it side by side; `align` and `timeline` are called while nothing runs.

#include <cuda_runtime.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/clocks.h"
#include "tandem/cuda.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/record.h"
#include "tandem/stream.h"
#include "trace/gpu_recording.h"

namespace tandem::cuda {

/// What a recording needs to know of a PE.
struct RecordedPe {
  int device = 0;
  cudaStream_t stream = nullptr;  ///< of the PE's own, for the clocks
  Mail* mail = nullptr;           ///< one, in memory that all PEs reach
};

class Recording {
 public:
  /// `place`, `name`: of an address in symmetric memory (trace::GpuRecording).
  Recording(std::vector<RecordedPe> pes, const CudaOptions& options, std::string machine,
            std::function<trace::GpuPlace(std::uint64_t)> place, std::function<std::string(std::uint64_t)> name);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// A stream of a PE, as work names it.
  struct StreamName {
    int pe;
    cudaStream_t stream;
    const std::string& name;
  };

  /// Launches the recorded form of a kernel where it has one and there is room for its records, else the usual one
  /// between events.
  void launch(const StreamName& stream, const detail::KernelLaunch& kernel, detail::DeviceLaunch launch);
  void write_signal(const StreamName& stream, Signal* word, const Epoch* from, Epoch value);
  void wait_signal(const StreamName& stream, const Context& context, const Signal* word, Epoch value);
  /// Number of a piece of work that the caller enqueues now, between events; `end` with that number follows.
  std::size_t begin(const StreamName& stream, std::string name, trace::SpanKind kind, Size bytes);
  void end(const StreamName& stream, std::size_t work);

  /// The order that events give.
  void note_record(const StreamName& stream, const detail::EventState* event);
  void note_wait(const StreamName& stream, const detail::EventState* event);

  /// Compares all clocks; before and after a run. Throws Timeout where a GPU does not answer.
  void align();
  /// What happened up to the last `align`; for work in graphs that is replayed, in the last replay.
  const trace::Timeline& timeline();
  RecordingInfo info();
  /// Microseconds of the timeline: since this recording began.
  double time_us() const;

 private:
  struct Work;
  struct Pe;
  struct Clocks;

  Pe& pe(const StreamName& stream) { return *pes_[static_cast<std::size_t>(stream.pe)]; }
  std::size_t add(const StreamName& stream, Work work);
  RecordArea area_for(Pe& pe, int blocks) const;
  void convert();

  CudaOptions options_;
  std::string machine_;
  std::function<trace::GpuPlace(std::uint64_t)> place_;
  std::function<std::string(std::uint64_t)> name_;
  std::vector<std::unique_ptr<Pe>> pes_;
  std::unique_ptr<Clocks> clocks_;
  trace::Timeline timeline_;
  RecordingInfo info_;
  bool converted_ = false;
};

/// A piece of stream work between events, while this lives; nothing where nothing is recorded.
class RecordedWork {
 public:
  RecordedWork(Recording* recording, const Recording::StreamName& stream, const char* name, trace::SpanKind kind,
               Size bytes)
      : recording_(recording), stream_(stream) {
    if (recording_ != nullptr) work_ = recording_->begin(stream_, name, kind, bytes);
  }
  ~RecordedWork() {
    if (recording_ != nullptr) recording_->end(stream_, work_);
  }
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;

 private:
  Recording* recording_;
  Recording::StreamName stream_;
  std::size_t work_ = 0;
};

}  // namespace tandem::cuda
