#pragma once
/// The interface that streams and host programs use of a world on real devices, with threads or processes as PEs.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "bootstrap/local/failure.h"
#include "runtime/heap_allocator.h"
#include "runtime/mismatch_detector.h"
#include "tandem/worlds.h"
#include "wire/proxy/proxy.h"
#include "world/device/devices.h"
#include "world/memory/segment.h"

namespace tandem::world {

/// Frees pinned memory.
struct PinnedFree {
  Devices* devices = nullptr;
  void operator()(void* memory) const { devices->free_pinned(memory); }
};

/// One PE of this process: its device, and the host's stream and report for it.
struct Pe {
  int device = 0;
  /// The stream of the host's own copies. The default stream would wait for kernels of PEs that share the device, which
  /// may wait for this PE.
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<WaitReport, PinnedFree> report;
};

/// Starts the device and makes it current.
Pe make_pe(Devices& devices, int device);

class Pes {
 public:
  Pes(Devices& devices, int pes, int device, int sharing, const WorldOptions& options);
  virtual ~Pes() = default;
  Pes(const Pes&) = delete;
  Pes& operator=(const Pes&) = delete;

  Devices& devices() const { return devices_; }
  int num_pes() const { return num_pes_; }
  int node_size() const { return node_size_; }
  Team team(int pe) const { return {0, 1, num_pes_, pe, node_size_}; }
  /// Returns the machine for plans: for a shared device, it has only the SMs that this PE may use.
  const Machine& machine() const { return machine_; }
  Context context(const Team& team) const;
  bool checks_calls() const { return checks_calls_; }
  /// Returns the use that PE `number` makes of a stream.
  StreamUse use(int number, const std::string& stream);
  /// Throws if the kernel is not compiled for the grid. Also throws if the grid is larger than each of the PEs that
  /// share a device can have there at once.
  void check_launch(const detail::KernelLaunch& kernel) const;

  /// Returns a PE of this process.
  virtual const Pe& pe(int number) const = 0;
  virtual const Segment& segment() const = 0;
  /// Allocates a buffer filled with zeros (control) or NaN, and returns its offset in the PE's part. A symmetric one is
  /// collective: the call returns once the buffers of all PEs are cleared.
  virtual Size allocate(int pe, bool symmetric, MemoryKind kind, Size bytes, const std::string& name,
                        Size element_bytes) = 0;
  /// Frees the buffer at that offset of PE `pe`'s part. Collective if it is symmetric.
  virtual void free(int pe, bool symmetric, Size offset) = 0;
  /// Notes that PE `pe` no longer uses the symmetric buffer at that offset. Not collective.
  virtual void release(int pe, Size offset) = 0;
  virtual std::string describe(const void* address) const = 0;
  /// Returns the bytes from `offset` in PE `pe`'s part to the end of the buffer there, if there is one.
  virtual std::optional<Size> bytes_from(int pe, Size offset) const = 0;
  /// Returns the detector to which PE `pe` of this process reports its calls; null if calls are not compared.
  virtual MismatchDetector* calls(int pe) const = 0;
  /// Returns the proxy of PE `pe` of this process; null in a world of one node.
  virtual wire::Proxy* proxy(int pe) const = 0;
  /// Blocks until the operations of PE `pe` on other nodes are complete there. Work of the PE has ended before.
  void settle(int pe) const;
  /// Lets no get of PE `pe` of this process write to its destination any more, before the PE learns of the world's end.
  void end_gets(int pe) const;
  /// Returns null if nothing is recorded.
  virtual Profiler* profiler() const { return nullptr; }
  /// Waits for the host programs of all PEs. Throws if one of them has failed.
  virtual void barrier() = 0;
  /// Returns the reason of the world's end, as PE `pe` reports it. `by` is the value of Context::abort that ended a
  /// wait of this PE, if one was ended.
  virtual std::optional<bootstrap::Failure> end(int pe, std::optional<std::uint32_t> by) const = 0;
  /// Sends the reason why PE `pe` cannot go on to the other PEs.
  virtual void abort_waits(int pe, const bootstrap::Failure& why) = 0;
  /// Ends the world after work of PE `pe` failed for which no host program waits. Any thread may call it.
  virtual void work_failed(int pe, const bootstrap::Failure& why) = 0;

 protected:
  /// The offset of the PEs' WaitWords, which are the first symmetric buffer of every world.
  static constexpr Size kWaitWordsOffset = 0;
  static constexpr const char* kWaitWordsName = "wait words";

  /// Makes every `size` consecutive PEs a node. The constructor makes one node of all PEs.
  void set_node_size(int size);
  /// Takes note that processes share a device by turns. Tuned times, which belong to a machine's name, are then not
  /// those of other worlds. No plan selects copies, which may stand behind a kernel of their GPU that waits for them.
  void note_turns() {
    machine_.name += ", shared by processes";
    machine_.gpu.copy_engines = 0;
  }
  /// Returns whether kernels reach some PEs through a mailbox alone.
  bool needs_proxies() const { return node_size_ < num_pes_ && devices_.has_mailbox(); }
  /// Returns the time after which a PE of another node that is not heard, or not reached any more, is lost.
  double silence_s() const { return silence_s_; }
  /// Returns a PE's name for errors.
  virtual std::string name_of(int pe) const { return fmt::format("PE {}", pe); }
  /// Returns how many PEs run on this computer.
  virtual int pes_of_computer() const { return num_pes_; }
  /// Starts the proxy of PE `number` of this process.
  std::unique_ptr<wire::Proxy> make_proxy(int number, const bootstrap::Key& secret,
                                          std::unique_ptr<wire::Endpoint> endpoint,
                                          const std::shared_ptr<wire::Access>& access,
                                          std::optional<wire::Heartbeat> heartbeat = {});
  /// Returns how long a proxy looks for more work before it sleeps.
  std::chrono::microseconds search_of_proxy() const;
  std::shared_ptr<wire::Access> make_access(int number, const wire::Endpoint& endpoint) const;
  /// Returns the place of PE `number` among the PEs.
  wire::Place place_of_pe(int number) const {
    return {segment().base(), segment().stride(), num_pes_, number, node_size_};
  }
  /// Ends the waits of PE `number`, which belongs to this process.
  void end_waits(int number) const;
  /// Returns whether the world is over for a PE of this process.
  bool is_over(const Context& own) const;
  /// Returns the WaitWords of PE `pe`. On another host they are a stand-in in this process.
  std::uint32_t* wait_words_of(int pe) const;
  void load_kernels(const std::vector<int>& on_devices);
  /// Returns the part in which memory of a kind lies: packets may be too large for the control part.
  static MemoryKind place_of(MemoryKind kind, Size bytes, const HeapAllocator& allocator) {
    return bytes > allocator.control_bytes() / 256 ? MemoryKind::kData : kind;
  }
  void clear(const Pe& pe, Size part, Size offset, Size bytes, MemoryKind kind) const;

 private:
  /// Ends the world for an error of PE `number` that no host program waits for.
  void report(int number, const std::exception_ptr& error);
  Devices& devices_;
  int num_pes_;
  int node_size_ = 1;
  /// The number of PEs on the device that the most PEs share. It is the same for all PEs, so that all refuse and choose
  /// alike.
  int sharing_;
  Machine machine_;
  bool early_launch_;
  double timeout_s_;
  double arrival_timeout_s_;
  double silence_s_;
  bool checks_calls_;
  mutable std::atomic<bool> has_ended_waits_{false};
  std::unique_ptr<LoadedKernels> kernels_;
};

/// Returns the report of PE `pe` as text, with its own names for memory.
bootstrap::Failure report_of(const Pes& pes, int pe);
/// Returns the report of PE `pe` of this process for the other PEs, with the calls that some PEs have not made.
bootstrap::Failure abort_report(const Pes& pes, int pe);

/// Describes the wait of PE `pe` that another PE's abort ended ("PE 2: block 0 was waiting for ..."); empty if none.
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
  void free_symmetric(const void* memory) override;
  void release_symmetric(const void* memory) override {
    pes_.release(pe_, static_cast<const std::byte*>(memory) - pes_.segment().base());
  }
  void free_local(const void* memory) override { pes_.free(pe_, false, offset_of(memory)); }
  void copy_in(void* to, const void* from, Size bytes) override { copy(to, from, bytes); }
  void copy_out(void* to, const void* from, Size bytes) override { copy(to, from, bytes); }
  std::shared_ptr<detail::StreamBackend> make_stream(const std::string& name) override;
  void check_launch(const detail::KernelLaunch& kernel) const override { pes_.check_launch(kernel); }
  void check_gemm(const Gemm& gemm) const override;
  void barrier() override;
  double time_us() const override;
  bool checks_calls() const override { return pes_.checks_calls(); }
  MismatchDetector* calls() override { return pes_.calls(pe_); }

 private:
  void copy(void* to, const void* from, Size bytes) const;
  Size offset_of(const void* memory) const;

  Pes& pes_;
  int pe_;
};

}  // namespace tandem::world
