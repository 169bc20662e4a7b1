#pragma once
/// What streams and host programs need of a world on real devices, whether its PEs are threads or processes.

#include <memory>
#include <optional>
#include <string>

#include "bootstrap/local/failure.h"
#include "runtime/heap_allocator.h"
#include "runtime/mismatch_detector.h"
#include "tandem/worlds.h"
#include "world/device/devices.h"
#include "world/memory/segment.h"

namespace tandem::world {

/// Frees pinned memory.
struct PinnedFree {
  Devices* devices = nullptr;
  void operator()(void* memory) const { devices->free_pinned(memory); }
};

/// One PE of this process: its device, and what the host keeps for it.
struct Pe {
  int device = 0;
  /// For the host's own copies. The default stream would wait for kernels of PEs that share the device, which may wait
  /// for this PE.
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<WaitReport, PinnedFree> report;
};

/// Starts the device; the current device is then this one.
Pe make_pe(Devices& devices, int device);

class Pes {
 public:
  Pes(Devices& devices, int pes, int device, int sharing, const WorldOptions& options);
  virtual ~Pes() = default;
  Pes(const Pes&) = delete;
  Pes& operator=(const Pes&) = delete;

  Devices& devices() const { return devices_; }
  int num_pes() const { return num_pes_; }
  Team team(int pe) const { return {0, 1, num_pes_, pe, num_pes_}; }
  /// As plans are to see it: of a shared device, the SMs that are this PE's.
  const Machine& machine() const { return machine_; }
  Context context(const Team& team) const;
  bool checks_calls() const { return checks_calls_; }
  /// The use that PE `pe` makes of a stream.
  StreamUse use(int pe, const std::string& stream);
  /// Throws where a grid is not what the kernel is compiled for, or more than each of the PEs that share a device can
  /// have there at once.
  void check_launch(const detail::KernelLaunch& kernel) const;

  /// A PE of this process.
  virtual const Pe& pe(int number) const = 0;
  virtual const Segment& segment() const = 0;
  /// Offset of a buffer of zeros (control) or NaN in each PE's part, once every PE's is cleared. Collective where it is
  /// symmetric.
  virtual Size allocate(int pe, bool symmetric, MemoryKind kind, Size bytes, const std::string& name,
                        Size element_bytes) = 0;
  /// Gives a buffer at that offset of PE `pe`'s part back. Collective where it is symmetric.
  virtual void free(int pe, bool symmetric, Size offset) = 0;
  /// PE `pe` is through with the symmetric buffer at that offset. Not collective.
  virtual void release(int pe, Size offset) = 0;
  virtual std::string describe(const void* address) const = 0;
  /// Bytes from offset `offset` of PE `pe`'s part to the end of the buffer there, if there is one.
  virtual std::optional<Size> bytes_from(int pe, Size offset) const = 0;
  /// Where PE `pe` of this process notes its calls; null where they are not compared.
  virtual MismatchDetector* calls(int pe) const = 0;
  /// Null where nothing is recorded.
  virtual Profiler* profiler() const { return nullptr; }
  /// Waits for all PEs' host programs; throws where one of them has failed.
  virtual void barrier() = 0;
  /// Why no PE can go on, as PE `pe` learns it. `by`: who ended a wait (Context::abort), if one was.
  virtual std::optional<bootstrap::Failure> end(int pe, std::optional<std::uint32_t> by) const = 0;
  /// PE `pe` cannot go on: tells the others why.
  virtual void abort_waits(int pe, const bootstrap::Failure& why) = 0;
  /// Work of PE `pe` failed without a host program that waits for it: ends the world. From any thread.
  virtual void work_failed(int pe, const bootstrap::Failure& why) = 0;

 protected:
  /// Offset of the PEs' WaitWords: the first symmetric buffer of every world.
  static constexpr Size kWaitWordsOffset = 0;
  static constexpr const char* kWaitWordsName = "wait words";

  /// Ends the waits of PE `number`, of this process.
  void end_waits(int number) const;
  void load_kernels(const std::vector<int>& on_devices);
  /// Where memory of a kind lies: packets take more than the control part is meant for.
  static MemoryKind place_of(MemoryKind kind, Size bytes) { return bytes > (Size{1} << 20) ? MemoryKind::kData : kind; }
  void clear(const Pe& pe, Size part, Size offset, Size bytes, MemoryKind kind) const;

 private:
  std::uint32_t* abort_of(int pe) const;

  Devices& devices_;
  int num_pes_;
  /// PEs on the device that the most share. For all PEs the same, so that none refuses or chooses what another does
  /// not.
  int sharing_;
  Machine machine_;
  bool early_launch_;
  double timeout_s_;
  double arrival_timeout_s_;
  bool checks_calls_;
  std::unique_ptr<LoadedKernels> kernels_;
};

/// The report of PE `pe` in words, with its own names for memory.
bootstrap::Failure report_of(const Pes& pes, int pe);
/// The same, for the others, with which calls some PEs have not made. Of a PE of this process.
bootstrap::Failure abort_report(const Pes& pes, int pe);

/// What PE `pe` waited for when another PE gave up ("PE 2: block 0 was waiting for ..."); empty if for nothing.
std::string ended_wait_of(const Pes& pes, int pe);

/// Copies in stream order on the PE's own stream, and waits for it.
void copy_and_wait(const Pe& pe, void* to, const void* from, Size bytes);

/// A PE's view of a world.
class WorldView : public detail::WorldBackend {
 public:
  WorldView(Pes& pes, int pe) : pes_(pes), pe_(pe) {}

  Team team() const override { return pes_.team(pe_); }
  const Machine& machine() const override { return pes_.machine(); }
  DeviceKind device() const override { return pes_.devices().kind(); }
  bool phantom() const override { return false; }
  Size stride() const override { return pes_.segment().stride(); }
  std::optional<Size> bytes_from(const void* memory) const override;
  void* allocate_symmetric(Size bytes, const std::string& name, Size element_bytes, bool control) override;
  void* allocate_local(Size bytes, const std::string& name, Size element_bytes, bool control) override;
  void free_symmetric(const void* memory) override { pes_.free(pe_, true, offset_of(memory)); }
  void release_symmetric(const void* memory) override {
    pes_.release(pe_, static_cast<const std::byte*>(memory) - pes_.segment().base());
  }
  void free_local(const void* memory) override { pes_.free(pe_, false, offset_of(memory)); }
  void copy_in(void* to, const void* from, Size bytes) override { copy_and_wait(pes_.pe(pe_), to, from, bytes); }
  void copy_out(void* to, const void* from, Size bytes) override { copy_and_wait(pes_.pe(pe_), to, from, bytes); }
  std::shared_ptr<detail::StreamBackend> make_stream(const std::string& name) override;
  void check_launch(const detail::KernelLaunch& kernel) const override { pes_.check_launch(kernel); }
  void check_gemm(const Gemm& gemm) const override;
  void barrier() override { pes_.barrier(); }
  double time_us() const override;
  bool checks_calls() const override { return pes_.checks_calls(); }
  MismatchDetector* calls() override { return pes_.calls(pe_); }

 private:
  Size offset_of(const void* memory) const;

  Pes& pes_;
  int pe_;
};

}  // namespace tandem::world
