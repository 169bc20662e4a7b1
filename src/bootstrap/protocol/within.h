#pragma once
/// A deadline for system calls that have none.

#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "bootstrap/protocol/deadline.h"

namespace tandem::bootstrap {

/// Returns the result of `work`, or nothing if it takes longer. Its thread then continues, so `work` must not refer to
/// objects of the caller. Throws everything that `work` throws.
template <class Work>
std::optional<std::invoke_result_t<Work>> within(const Deadline& deadline, Work work) {
  std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_until(deadline.at()) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace tandem::bootstrap
