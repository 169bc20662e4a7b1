#pragma once
/// The parts of one process of tests/gpu/processes/processes_gpu_check.cpp. Each part throws if an expectation fails.

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/graph.h"
#include "support/collective_rounds.h"
#include "tandem/cuda.h"

namespace tandem::test {

/// Begins the line that is printed behind a part that passed.
inline constexpr const char* kPassed = "-- passed: ";

/// Runs the parts of those names, one after the other; what went wrong is printed and gives exit code 1.
int run_peer(const std::vector<std::string>& parts);

// Parts in which something fails on purpose; afterwards a new world is made.
void missing_call();
void other_plans();
void other_counts(bool by_gpus);
void shared_gpu();
void exhausted_heap();
void failed_program();
void unreported_end();
void killed_peer(bool is_host);

inline CudaOptions small_world(double timeout_s = 10) {
  CudaOptions options;
  options.heap_bytes = Size{256} << 20;
  options.timeout_s = options.arrival_timeout_s = timeout_s;
  options.join_timeout_s = 30;
  return options;
}

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The error of `work`, which has to end with one of type E.
template <class E, class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  }
  throw std::runtime_error("expected an error");
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline void check_case(World& world, const RoundsCase& c) {
  const RoundsResult result =
      dispatch(c.type, [&]<class T>() { return CollectiveRounds<T>(world, c, capture_graph).run(); });
  expect(result.wrong == 0, fmt::format("{}: none wrong, {} of {} are, first: {}", describe(c, world.num_pes()),
                                        result.wrong, result.checked, result.first_wrong));
}

}  // namespace tandem::test
