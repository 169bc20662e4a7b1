#include "cuda/driver/hardware_queues.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace tandem::cuda {

/// A driver that is not loaded has not started. One that has not started knows no number of devices.
bool is_driver_started() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  const bool is_started = count != nullptr && count(&devices) == 0;
  ::dlclose(driver);
  return is_started;
}

std::string lacks_queues(const QueueSetting& setting) {
  constexpr const char* kEffect =
      "in a world of several nodes, copies between nodes may then stand behind kernels that wait for them; set it to "
      "32 before the first CUDA call of any library";
  if (setting.value && std::atoi(setting.value->c_str()) >= kQueuesBetweenNodes) return "";
  if (setting.value) return fmt::format("CUDA_DEVICE_MAX_CONNECTIONS is '{}': {}", *setting.value, kEffect);
  return fmt::format("CUDA_DEVICE_MAX_CONNECTIONS is not set, and {}: {}",
                     setting.is_started ? "CUDA was started before Tandem" : "nothing named this world's several nodes",
                     kEffect);
}

}  // namespace tandem::cuda
