#include "tools/tandem/options/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/mapping_pool.h"

namespace tandem::cli {

void for_chunks(Size count, Size piece, const std::function<void(Range)>& body) {
  const Size pieces = ceil_div(count, piece);
  std::atomic<Size> next{0};
  std::exception_ptr error;
  std::mutex error_mutex;
  const auto work = [&] {
    const MappingPool pool;
    try {
      for (Size i = next++; i < pieces; i = next++) body({i * piece, std::min((i + 1) * piece, count)});
    } catch (...) {
      const std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
      next = pieces;
    }
  };
  const Size processors = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (Size i = 1; i < std::min(pieces, processors); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace tandem::cli
