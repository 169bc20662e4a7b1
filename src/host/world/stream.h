#pragma once
/// A stream on CPUs: a queue of work with its own thread, which is its copy engine too.

#include <atomic>
#include <memory>

#include "host/world/task_queue.h"
#include "world/device/stream.h"

namespace tandem::host {

class HostStream final : public world::DeviceStream {
 public:
  /// If `is_own`, the destructor closes the queue.
  HostStream(world::StreamUse use, std::shared_ptr<TaskQueue> queue, bool is_own)
      : use_(std::move(use)), queue_(std::move(queue)), is_own_(is_own) {}
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
  void add(std::function<void()> task) { queue_->add(std::move(task), use_.on_error); }

  world::StreamUse use_;
  std::shared_ptr<TaskQueue> queue_;
  bool is_own_;
};

}  // namespace tandem::host
