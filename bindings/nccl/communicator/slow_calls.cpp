#include "bindings/nccl/communicator/slow_calls.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

#include "bindings/nccl/handles.h"
#include "bootstrap/local/environment.h"

namespace tandem::nccl {

namespace {

void watch(double limit_s) {
  const std::chrono::duration<double> pause(std::clamp(limit_s / 4, 0.01, 5.0));
  for (;;) {
    std::this_thread::sleep_for(pause);
    for (const auto& communicator : all_communicators()) communicator->report_slow_call(limit_s);
  }
}

}  // namespace

void watch_calls() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      std::thread(watch, bootstrap::slow_wait_s()).detach();
    } catch (const std::system_error&) {
      warn("no thread is left to report calls that last");
    }
  });
}

}  // namespace tandem::nccl
