#pragma once
/// Checks on GPUs whose data is 32-bit words: each runs a program on every PE and counts wrong words.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "support/collective_values.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

inline int passed = 0;
inline int failed = 0;

using Words = std::vector<std::uint32_t>;

/// Counts and prints one check.
inline void report(const std::string& what, const std::string& problem) {
  ++(problem.empty() ? passed : failed);
  std::printf("%s %s%s%s\n", problem.empty() ? "ok    " : "FAILED", what.c_str(), problem.empty() ? "" : ": ",
              problem.c_str());
  std::fflush(stdout);
}

/// Counts one check of thousands, and prints it if it failed and few others did.
inline void count_check(const std::string& what, const std::string& problem) {
  constexpr int kMostPrinted = 40;
  ++(problem.empty() ? passed : failed);
  if (problem.empty() || failed > kMostPrinted) return;
  std::printf("FAILED %s: %s\n", what.c_str(), problem.c_str());
  std::fflush(stdout);
}

/// The last line of a program of checks, and its exit code.
inline int finish() {
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

inline CudaOptions checked_world() {
  CudaOptions options;
  options.heap_bytes = Size{512} << 20;
  options.timeout_s = options.arrival_timeout_s = 10;
  return options;
}

/// Runs `program` on every PE, with its count of wrong words as the result.
inline void check(const std::string& what, int pes, const std::function<Size(World&)>& program) {
  std::string problem;
  std::atomic<Size> wrong{0};
  try {
    CudaThreads threads(pes, checked_world());
    threads.run([&](World& world) { wrong += program(world); });
    if (wrong > 0) problem = fmt::format("{} words wrong", wrong.load());
  } catch (const std::exception& error) {
    problem = error.what();
  }
  report(fmt::format("{}, {} PEs", what, pes), problem);
}

/// Reports cases, each by its description and its first error. `start(world)` returns the function that runs a case on
/// a PE and returns that error, or "". Several cases share a world, which costs a tenth of a second. They leave their
/// data there, so not all of them find room in one.
template <class Case, class Describe, class Start>
void check_cases(int pes, const std::vector<Case>& cases, const Describe& describe, const Start& start) {
  constexpr std::size_t kCasesOfAWorld = 12;
  struct Outcome {
    int ended = 0;  // PEs
    std::string problem;
  };
  for (std::size_t first = 0; first < cases.size(); first += kCasesOfAWorld) {
    const std::size_t last = std::min(first + kCasesOfAWorld, cases.size());
    std::vector<Outcome> outcomes(last - first);
    std::string error;
    std::mutex mutex;
    try {
      CudaThreads threads(pes, checked_world());
      threads.run([&](World& world) {
        auto wrong_of = start(world);
        for (std::size_t i = first; i < last; ++i) {
          const std::string wrong = wrong_of(cases[i]);
          const std::lock_guard lock(mutex);
          Outcome& outcome = outcomes[i - first];
          ++outcome.ended;
          if (outcome.problem.empty()) outcome.problem = wrong;
        }
      });
    } catch (const std::exception& exception) {
      error = exception.what();
    }
    for (std::size_t i = first; i < last; ++i) {
      const Outcome& outcome = outcomes[i - first];
      report(describe(cases[i], pes), outcome.ended < pes && outcome.problem.empty() ? error : outcome.problem);
    }
  }
}

inline std::uint32_t base_word(int pe, Size i) { return static_cast<std::uint32_t>(mix(7, 8, pe, i)); }

inline Words base_words(int pe, Size count) {
  Words words(static_cast<std::size_t>(count));
  for (Size i = 0; i < count; ++i) words[static_cast<std::size_t>(i)] = base_word(pe, i);
  return words;
}

inline std::uint32_t* local_words(World& world, const char* name, const Words& contents) {
  const auto count = static_cast<Size>(contents.size());
  auto* const words = world.heap().allocate_local<std::uint32_t>(count, name);
  world.copy_in(words, contents.data(), count * 4);
  return words;
}

inline Size count_wrong(World& world, const std::uint32_t* differences, Size count) {
  Words words(static_cast<std::size_t>(count));
  world.copy_out(words.data(), differences, count * 4);
  return static_cast<Size>(std::count_if(words.begin(), words.end(), [](std::uint32_t word) { return word != 0; }));
}

}  // namespace tandem::test
