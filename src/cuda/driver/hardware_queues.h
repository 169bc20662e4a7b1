#pragma once
/// The hardware queues of a GPU, whose number the driver reads from CUDA_DEVICE_MAX_CONNECTIONS when it starts.

#include <optional>
#include <string>

namespace tandem::cuda {

/// The number that a world of several nodes needs, and the largest one. With fewer queues, a proxy's copies stand
/// behind kernels that wait for them (bench/NOTES.md).
constexpr int kQueuesBetweenNodes = 32;

/// Returns whether some code of this process has started the driver. It starts nothing.
bool is_driver_started();

/// The state of the environment when this backend was made.
struct QueueSetting {
  std::optional<std::string> value;  ///< of CUDA_DEVICE_MAX_CONNECTIONS, as the driver reads or has read it
  bool is_started = false;           ///< the driver had started before
};

/// Returns why a world of several nodes may stand still, and the remedy; empty if there are enough queues.
std::string lacks_queues(const QueueSetting& setting);

}  // namespace tandem::cuda
