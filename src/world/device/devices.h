#pragma once
/// The devices of one kind that this process has: all that worlds need to know of them. GPUs and CPUs implement it, and
/// tests wrap it.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/machine.h"
#include "tandem/world.h"
#include "wire/access.h"
#include "wire/endpoint.h"
#include "world/device/memory.h"
#include "world/device/profiler.h"
#include "world/device/stream.h"

namespace tandem::world {

/// The kernels that are loaded on the devices of a world.
class LoadedKernels {
 public:
  virtual ~LoadedKernels() = default;
  /// Throws if the kernel is not compiled for the grid. Also throws if the grid has more blocks than each of `sharing`
  /// PEs can have on their device at once.
  virtual void check(const detail::KernelLaunch& kernel, int sharing) const = 0;
};

class Devices {
 public:
  virtual ~Devices() = default;

  virtual DeviceKind kind() const = 0;
  /// "cuda", for errors.
  virtual std::string name() const = 0;
  /// "GPU 0".
  virtual std::string name_of(int device) const = 0;
  /// Never throws.
  virtual int count() = 0;
  /// Returns the largest number of PEs that may share a device.
  virtual int most_sharing() const = 0;
  /// Throws Unsupported if there is no device.
  virtual void require_any() = 0;
  /// Returns the limits of a device in the form of a machine, which plans read.
  virtual Machine describe(int device) = 0;
  virtual bool has_early_launch(int device) = 0;
  /// Returns whether kernels reach PEs of other nodes through a mailbox (wire/mailbox.h).
  virtual bool has_mailbox() const { return false; }
  /// Makes the access of a PE's proxy to its memory, for the messages of an endpoint.
  virtual std::shared_ptr<wire::Access> make_access(int, const wire::Place& place, const wire::Room&) {
    return std::make_shared<wire::HostAccess>(place);
  }
  /// Returns how long a proxy looks for more work before it sleeps, if `pes` PEs run on this computer. The default is
  /// for devices whose kernels do not wake it.
  virtual std::chrono::microseconds search_of_proxy(int) const { return std::chrono::milliseconds(2); }
  /// Wakes the waits of the context's PE: a proxy has changed its memory or taken its requests.
  virtual void wake_waits(const Context&) noexcept {}
  /// Returns the SMs that each PE may use if `sharing` PEs share a device of `sms` SMs.
  virtual int share_of(int sms, int sharing) const = 0;
  /// Returns an identity that no two processes of a world may share, unless TANDEM_SHARE_GPU allows it. It is empty if
  /// any number of processes may use the device.
  virtual Bytes exclusive_id(int device) = 0;
  /// Returns why several processes cannot share the device by turns; empty if they can.
  virtual std::string lacks_sharing(int) { return ""; }

  /// Makes a device ready for this process, and current on this thread.
  virtual void start(int device) = 0;
  virtual void set_current(int device) = 0;
  /// Returns the device that is current on this thread; -1 if none needs to be current.
  virtual int current() = 0;
  /// Makes a started device current in place of another one. Returns the `before` of `leave`.
  virtual int enter(int device) = 0;
  virtual void leave(int device, int before) noexcept = 0;
  /// Blocks until the device has done the work of `world`, and maybe that of others. Null stands for all. Throws
  /// nothing: synchronizing a stream reports errors.
  virtual void wait_until_idle(int device, const void* world) noexcept = 0;
  /// Does the same for the work of all worlds.
  void wait_until_idle(int device) noexcept { wait_until_idle(device, nullptr); }

  /// Allocates memory of the host that a device reaches.
  virtual void* allocate_pinned(Size bytes) = 0;
  virtual void free_pinned(void* memory) noexcept = 0;
  virtual DeviceMemory& memory() = 0;

  /// Registers the library's kernels, and with `recorded` their recording forms. Further calls do nothing. Any thread
  /// may call it.
  virtual void register_kernels(bool recorded) = 0;
  /// Loads all kernels on these devices, because a lazy load behind a kernel that waits may block forever. A world of
  /// several nodes needs their forms for that.
  virtual std::unique_ptr<LoadedKernels> load_kernels(const std::vector<int>& devices, bool several_nodes) = 0;
  /// Throws Unsupported if the device has no fused GEMM for these types, this layout and this tile.
  virtual void check_fused_gemm(int device, const Gemm& gemm) = 0;

  /// Makes a stream that only a PE's host uses.
  virtual std::unique_ptr<DeviceStream> make_own_stream(int device) = 0;
  /// Makes a stream. `profiler` is the world's, or null.
  virtual std::unique_ptr<DeviceStream> make_stream(const StreamUse& use, Profiler* profiler) = 0;
  /// Wraps a stream of another owner, who keeps it until this object is destroyed.
  virtual std::unique_ptr<DeviceStream> borrow_stream(const StreamUse& use, void* native, Profiler* profiler) = 0;

  /// Returns the size of ClockPe::mail.
  virtual Size clock_mail_bytes() const = 0;
  virtual std::unique_ptr<Profiler> make_profiler(const ProfilerSetup& setup) = 0;
};

/// Makes a device current for a scope, and then restores the previous one. The restore avoids cudaSetDevice, which
/// would start a GPU that this process has not used, unless cudaSetDevice was called meanwhile.
class CurrentDevice {
 public:
  /// Makes a device current that this process has started. Throws RuntimeFailure.
  CurrentDevice(Devices& devices, int device) : devices_(devices), device_(device), before_(devices.enter(device)) {}
  ~CurrentDevice() { devices_.leave(device_, before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  Devices& devices_;
  int device_;
  int before_;
};

/// Returns the devices of a kind. Throws Unsupported if this program has none: it is built without them, or they are
/// simulated. Without a kind, TANDEM_DEVICE in the environment ("gpu", "host") decides. Without that, the devices are
/// GPUs if there are any, else CPUs.
Devices& devices_of(std::optional<DeviceKind> kind);

/// Returns the CPUs. The host backend defines it.
Devices& host_devices();

/// Replaces the devices of a kind by `devices` during its lifetime, for tests.
class ReplacedDevices {
 public:
  explicit ReplacedDevices(Devices& devices);
  ~ReplacedDevices();
  ReplacedDevices(const ReplacedDevices&) = delete;
  ReplacedDevices& operator=(const ReplacedDevices&) = delete;

 private:
  DeviceKind kind_;
  Devices* before_;
};

}  // namespace tandem::world
