#pragma once
/// The devices of one kind that this process has: all that worlds need to know of them. GPUs and CPUs implement it, and
/// tests wrap it.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/machine.h"
#include "tandem/world.h"
#include "world/device/memory.h"
#include "world/device/profiler.h"
#include "world/device/stream.h"

namespace tandem::world {

/// The kernels that are loaded on the devices of a world.
class LoadedKernels {
 public:
  virtual ~LoadedKernels() = default;
  /// Throws where a grid is not what the kernel is compiled for, or more blocks than each of `sharing` PEs on a device
  /// can have there at once.
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
  /// PEs that may share a device.
  virtual int most_sharing() const = 0;
  /// Throws Unsupported where there is none.
  virtual void require_any() = 0;
  /// The limits of a device, as plans ask a machine for them.
  virtual Machine describe(int device) = 0;
  virtual bool has_early_launch(int device) = 0;
  /// SMs that each PE counts on where several share a device of `sms` SMs.
  virtual int share_of(int sms, int sharing) const = 0;
  /// Bytes that two processes of a world must not both give; empty: any number of processes may use the device.
  virtual Bytes exclusive_id(int device) = 0;

  /// Makes a device ready for this process, and current on this thread.
  virtual void start(int device) = 0;
  virtual void set_current(int device) = 0;
  /// The device that is current on this thread; -1 where any will do.
  virtual int current() = 0;
  /// Makes a started device current where another one is. Returns what `leave` takes.
  virtual int enter(int device) = 0;
  virtual void leave(int device, int before) noexcept = 0;
  /// Waits until the device has nothing to do. Throws nothing: whoever synchronizes a stream finds errors.
  virtual void wait_until_idle(int device) noexcept = 0;

  /// Memory of the host that a device reaches.
  virtual void* allocate_pinned(Size bytes) = 0;
  virtual void free_pinned(void* memory) noexcept = 0;
  virtual DeviceMemory& memory() = 0;

  /// Makes the library's kernels known, and with `recorded` their forms that record what they do. Once; from any
  /// thread.
  virtual void register_kernels(bool recorded) = 0;
  /// Loads all kernels on these devices: a lazy load behind a kernel that waits may wait for ever.
  virtual std::unique_ptr<LoadedKernels> load_kernels(const std::vector<int>& devices) = 0;
  /// Throws Unsupported where the device has no GEMM with hooks of these types, layout and tile.
  virtual void check_hooked_gemm(int device, const Gemm& gemm) = 0;

  /// A stream of a PE's host alone.
  virtual std::unique_ptr<DeviceStream> make_own_stream(int device) = 0;
  /// `recording`: null, or the world's.
  virtual std::unique_ptr<DeviceStream> make_stream(const StreamUse& use, Profiler* profiler) = 0;
  /// Work for a stream that somebody else made and keeps until this object is gone.
  virtual std::unique_ptr<DeviceStream> borrow_stream(const StreamUse& use, void* native, Profiler* profiler) = 0;

  /// Throws Unsupported where the devices record nothing.
  virtual Size clock_mail_bytes() const = 0;
  virtual std::unique_ptr<Profiler> make_profiler(const ProfilerSetup& setup) = 0;
};

/// A device that is current for a while. The one before is then current as it was: not by cudaSetDevice, which would
/// start a GPU that this process has not used, unless that was called meanwhile.
class CurrentDevice {
 public:
  /// This process has started the device. Throws RuntimeFailure.
  CurrentDevice(Devices& devices, int device) : devices_(devices), device_(device), before_(devices.enter(device)) {}
  ~CurrentDevice() { devices_.leave(device_, before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  Devices& devices_;
  int device_;
  int before_;
};

/// The devices of a kind. Throws Unsupported where this program has none: it is built without them, or they are
/// simulated. Without a kind: as TANDEM_DEVICE in the environment says ("gpu", "host"), else GPUs where there are some,
/// else CPUs.
Devices& devices_of(std::optional<DeviceKind> kind);

/// The CPUs. The host backend defines it.
Devices& host_devices();

/// For tests: while it lives, `devices` take the place of those of their kind.
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
