#pragma once
/// A GPU that is current for a while.

namespace tandem::cuda {

/// Makes a GPU current on this thread during the guard's lifetime. Afterwards the previous GPU is current again. The
/// guard calls cudaSetDevice only if somebody called it meanwhile, because it would start a GPU that this process has
/// not used.
class DeviceGuard {
 public:
  /// This process has started the GPU. Throws RuntimeFailure.
  explicit DeviceGuard(int device) : device_(device), before_(enter(device)) {}
  ~DeviceGuard() { leave(device_, before_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  /// The two halves of the guard. `enter` returns the value that `leave` takes as `before`.
  static int enter(int device);
  static void leave(int device, int before) noexcept;

 private:
  int device_;
  int before_;
};

}  // namespace tandem::cuda
