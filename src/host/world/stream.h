#pragma once
/// A stream on CPUs: a queue of work with its own thread, which is its copy engine too.

#include <atomic>
#include <memory>

#include "host/world/profiler.h"
#include "host/world/task_queue.h"
#include "world/device/stream.h"

namespace tandem::host {

class HostStream final : public world::DeviceStream {
 public:
  /// If `is_own`, the destructor closes the queue. `profiler` is the world's, or null.
  HostStream(world::StreamUse use, std::shared_ptr<TaskQueue> queue, bool is_own, HostProfiler* profiler = nullptr)
      : use_(std::move(use)), queue_(std::move(queue)), is_own_(is_own), profiler_(profiler) {}
  ~HostStream() override;
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  void launch(const detail::KernelLaunch& kernel, const world::Context& context) override;
  void gemm(const Gemm& gemm, const world::Context& context) override;
  bool adds_up(const Gemm&) const override { return false; }
  void copy(const world::Context& context, void* to, const void* from, Size bytes) override;
  void write_signal(const world::Context& context, Signal* word, const Epoch* from, Epoch value) override;
  void wait_signal(const world::Context& context, const Signal* word, Epoch value) override;
  void compare_calls(const world::Context& context, const detail::CallComparison& call) override;
  std::shared_ptr<detail::EventState> record() override;
  void wait(const std::shared_ptr<detail::EventState>& event) override;
  void synchronize() override;
  void* native() override { return queue_.get(); }

  // The following functions act at once, on the calling thread.
  void copy_host(void* to, const void* from, Size bytes) override;
  void fill(void* memory, int byte, Size bytes) override;
  void end_waits(const world::Context& context) noexcept override;
  void write_patterns(const world::SelfTest& test) override;
  void read_patterns(const world::SelfTest& test, std::uint32_t* wrong) override;

 private:
  GridThreads threads();
  /// Notes work for the world's recording; see HostProfiler::note.
  RecordedWork* note(std::string name, trace::SpanKind kind, const Team& team, int blocks = 1, Size bytes = 0);
  RecordedWork* note_one(const char* name) { return note(name, trace::SpanKind::kKernel, {}); }
  void add(std::function<void()> task) { queue_->add(std::move(task), use_.on_error); }

  world::StreamUse use_;
  std::shared_ptr<TaskQueue> queue_;
  bool is_own_;
  HostProfiler* profiler_;
};

}  // namespace tandem::host
