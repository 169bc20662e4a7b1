#pragma once
/// Work on test data by several threads, where there is enough of it: hosts are slower than the GPUs they check.

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "tandem/range.h"

namespace tandem::test {

/// Calls `work(part)` for parts of `all`, which are at once as many as pay. `cost`: of one index, in elements that are
/// looked at; the calls must not touch the same data. Exceptions come out.
template <class Work>
void in_threads(Range all, Size cost, const Work& work) {
  constexpr Size kWorthAThread = 20'000;
  constexpr Size kMost = 16;
  const Size cores = std::clamp<Size>(std::thread::hardware_concurrency(), 1, kMost);
  const Size threads =
      std::clamp<Size>(all.size() * cost / kWorthAThread, 1, std::min(cores, std::max<Size>(all.size(), 1)));
  const Split parts = split(all, threads);
  std::vector<std::future<void>> others;
  for (Size i = 1; i < threads; ++i)
    others.push_back(std::async(std::launch::async, [&work, part = parts[i]] { work(part); }));
  work(parts[0]);
  for (std::future<void>& other : others) other.get();
}

/// The sum of what `count(part)` gives.
template <class Count>
Size count_in_threads(Range all, Size cost, const Count& count) {
  std::atomic<Size> sum{0};
  in_threads(all, cost, [&](Range part) { sum += count(part); });
  return sum;
}

}  // namespace tandem::test
