#pragma once
/// A GPU that is current for a while.

namespace tandem::cuda {

/// Makes a GPU current on this thread where another one is, until it goes. The other one is then current as it was: not
/// by cudaSetDevice, which would start a GPU that this process has not used, unless that was called meanwhile.
class DeviceGuard {
 public:
  /// The GPU was started by this process. Throws RuntimeFailure.
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  static constexpr int kNone = -1;

  int device_;
  int other_ = kNone;  ///< the current one before
};

}  // namespace tandem::cuda
