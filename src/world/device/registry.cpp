#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "tandem/error.h"
#include "world/device/devices.h"

namespace tandem::world {

/// The CUDA backend's, in programs that are linked with it: target_link_libraries(... tandem::cuda) asks the linker for
/// them.
extern "C" Devices* tandem_gpu_devices() __attribute__((weak));

namespace {

/// By kind, for tests.
std::atomic<Devices*>& replaced(DeviceKind kind) {
  static std::array<std::atomic<Devices*>, 3> all{};
  return all.at(static_cast<std::size_t>(kind));
}

Devices* find(DeviceKind kind) {
  if (Devices* const other = replaced(kind)) return other;
  if (kind == DeviceKind::kHost) return &host_devices();
  return tandem_gpu_devices != nullptr ? tandem_gpu_devices() : nullptr;
}

/// TANDEM_DEVICE.
std::optional<DeviceKind> kind_of_environment() {
  const char* const text = std::getenv("TANDEM_DEVICE");
  const std::string kind = text == nullptr ? "" : text;
  if (kind.empty()) return std::nullopt;
  if (kind == "gpu") return DeviceKind::kGpu;
  if (kind == "host") return DeviceKind::kHost;
  throw InvalidArgument(fmt::format("TANDEM_DEVICE: '{}' given, allowed are gpu and host", kind));
}

}  // namespace

Devices& devices_of(std::optional<DeviceKind> kind) {
  if (!kind) kind = kind_of_environment();
  if (!kind) {
    Devices* const gpus = find(DeviceKind::kGpu);
    kind = gpus != nullptr && gpus->count() > 0 ? DeviceKind::kGpu : DeviceKind::kHost;
  }
  if (*kind == DeviceKind::kSimulated)
    throw InvalidArgument("kind: kSimulated given, allowed are kGpu and kHost; tandem::Simulation simulates");
  if (Devices* const found = find(*kind)) return *found;
  throw Unsupported("cuda backend: this program has none; link it with tandem::cuda, of a build with -DTANDEM_CUDA=ON");
}

ReplacedDevices::ReplacedDevices(Devices& devices)
    : kind_(devices.kind()), before_(replaced(kind_).exchange(&devices)) {}
ReplacedDevices::~ReplacedDevices() { replaced(kind_) = before_; }

}  // namespace tandem::world
