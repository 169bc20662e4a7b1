#pragma once
/// A GPU that is current for a while.

namespace tandem::cuda {

/// Makes a GPU current on this thread where another one is, until it goes. The other one is then current as it was: not
/// by cudaSetDevice, which would start a GPU that this thread has not used yet.
class DeviceGuard {
 public:
  /// The GPU was started by this process. Throws RuntimeFailure.
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int device_;
  bool is_other_ = false;  ///< than the current one before
};

}  // namespace tandem::cuda
