#pragma once
/// A world whose PEs are threads of this process.

#include <condition_variable>
#include <mutex>
#include <vector>

#include "wire/loop.h"
#include "world/pes/pes.h"

namespace tandem::world {

class Threads : public Pes {
 public:
  /// `disorder` is that of messages between nodes, for tests.
  Threads(Devices& devices, int pes, const WorldOptions& options, const wire::Disorder& disorder = {});
  ~Threads() override;

  const Pe& pe(int number) const override { return pes_[static_cast<std::size_t>(number)]; }
  const Segment& segment() const override { return segment_; }
  Size allocate(int number, bool symmetric, MemoryKind kind, Size bytes, const std::string& name,
                Size element_bytes) override;
  void free(int number, bool symmetric, Size offset) override;
  void release(int number, Size offset) override;
  std::string describe(const void* address) const override;
  std::optional<Size> bytes_from(int number, Size offset) const override;
  MismatchDetector* calls(int pe) const override {
    return calls_.empty() ? nullptr : calls_[static_cast<std::size_t>(pe)].get();
  }
  void barrier() override;
  std::optional<bootstrap::Failure> end(int pe, std::optional<std::uint32_t> by) const override;
  void abort_waits(int, const bootstrap::Failure&) override {}  // the others read this process's memory
  void work_failed(int number, const bootstrap::Failure& why) override;

  /// Ends the waits of all PEs, on the host and on the devices, with the first reason that was given.
  void fail(const bootstrap::Failure& why);
  /// Blocks until the devices are idle. Throws nothing: synchronizing a stream reports errors.
  void drain() const;
  wire::Proxy* proxy(int pe) const override {
    return proxies_.empty() ? nullptr : proxies_[static_cast<std::size_t>(pe)].get();
  }
  Profiler* profiler() const override { return profiler_.get(); }

 private:
  ClockPe clock_of(int number);
  void start_proxies(const wire::Disorder& disorder);

  std::vector<Pe> pes_;
  mutable std::mutex mutex_;
  HeapAllocator allocator_;
  Segment segment_;
  std::condition_variable changed_;
  int waiting_ = 0;
  std::uint64_t round_ = 0;
  std::optional<bootstrap::Failure> failure_;
  CallRecords records_;
  std::vector<std::unique_ptr<MismatchDetector>> calls_;  // by PE
  std::unique_ptr<Profiler> profiler_;
  std::vector<std::unique_ptr<wire::Proxy>> proxies_;  // by PE
};

/// Runs `program` as PE `pe` on the calling thread.
void run_pe(Threads& threads, int pe, const std::function<void(World&)>& program);

}  // namespace tandem::world
