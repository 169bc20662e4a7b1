#pragma once
/// A deadline for calls of the system that take none.

#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "bootstrap/protocol/deadline.h"

namespace tandem::bootstrap {

/// The result of `work`; nothing where it takes longer. Its thread then goes on by itself, so `work` refers to nothing
/// of the caller's. Throws what `work` throws.
template <class Work>
std::optional<std::invoke_result_t<Work>> within(const Deadline& deadline, Work work) {
  std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_until(deadline.at()) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace tandem::bootstrap
