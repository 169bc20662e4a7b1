#include "support/in_threads.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace tandem::test {

void in_threads(Range all, Size cost, const std::function<void(Range)>& work) {
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

Size count_in_threads(Range all, Size cost, const std::function<Size(Range)>& count) {
  std::atomic<Size> sum{0};
  in_threads(all, cost, [&](Range part) { sum += count(part); });
  return sum;
}

}  // namespace tandem::test
