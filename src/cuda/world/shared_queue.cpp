#include "cuda/world/shared_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tandem/error.h"

namespace tandem::cuda {

namespace {

std::mutex mutex;
std::map<int, int> taken;  // by GPU

/// Returns the number of a GPU's queues, as the driver read it when it started.
int queues() {
  constexpr int kDefault = 8, kMost = 32;
  const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int given = text == nullptr ? 0 : std::atoi(text);
  return given < 1 ? kDefault : std::min(given, kMost);
}

}  // namespace

SharedQueue::SharedQueue(int device, int sharing, const std::string& stream) : device_(device) {
  const int most = std::max(0, queues() - sharing);  // each PE's host has a stream, too
  const std::lock_guard lock(mutex);
  if (taken[device] >= most)
    throw Unsupported(fmt::format(
        "make_stream: {} given, GPU {} with its {} PEs can have {} streams: others would share one of its {} "
        "hardware queues, and kernels that wait for each other (CUDA_DEVICE_MAX_CONNECTIONS, up to 32)",
        stream, device, sharing, most, queues()));
  ++taken[device];
}

SharedQueue::~SharedQueue() {
  const std::lock_guard lock(mutex);
  --taken[device_];
}

}  // namespace tandem::cuda
