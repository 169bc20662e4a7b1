#pragma once
/// A GPU that is current for a while.

namespace tandem::cuda {

/// Makes a GPU current on this thread where another one is, until it goes. The other one is then current as it was: not
/// by cudaSetDevice, which would start a GPU that this process has not used, unless that was called meanwhile.
class DeviceGuard {
 public:
  /// The GPU was started by this process. Throws RuntimeFailure.
  explicit DeviceGuard(int device) : device_(device), before_(enter(device)) {}
  ~DeviceGuard() { leave(device_, before_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  /// Both halves. `enter` returns what `leave` takes.
  static int enter(int device);
  static void leave(int device, int before) noexcept;

 private:
  int device_;
  int before_;
};

}  // namespace tandem::cuda
