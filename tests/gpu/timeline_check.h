#pragma once
/// Common parts of the checks of timelines: alternating graphs with and without recording, the same calls in the
/// simulator, and the count of failures.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/median.h"
#include "cuda/driver/graph.h"
#include "tandem/cuda.h"
#include "tandem/simulation.h"
#include "tandem/timeline.h"
#include "trace/timeline/cut.h"

namespace tandem::test {

struct Measured {
  std::string machine;
  double off_us = 0, on_us = 0;         // of a call, on the slowest PE
  double begin_us = 1e300, end_us = 0;  // of the last replay that was recorded
};

inline int failures = 0;

inline void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::printf("FAILED %s\n", what.c_str());
}

inline trace::Time picoseconds(double us) { return static_cast<trace::Time>(us * 1e6); }

/// One PE's rounds: a graph of `calls` calls, with and without recording in turns.
class ProfiledRounds {
 public:
  ProfiledRounds(CudaThreads& threads, World& world, Stream& stream, int calls, int rounds)
      : threads_(threads), world_(world), stream_(stream), calls_(calls), rounds_(rounds) {
    cuda::check(cudaEventCreate(&before_), "cudaEventCreate");
    cuda::check(cudaEventCreate(&after_), "cudaEventCreate");
  }

  /// `call` enqueues one call. `measured` is for all PEs, under `mutex`.
  void run(const std::function<void()>& call, Measured& measured, std::mutex& mutex) {
    const auto off = graph(call, false);
    const auto on = graph(call, true);
    std::vector<double> off_us, on_us;
    double begin = 0;
    for (int round = 0; round < rounds_; ++round) {
      off_us.push_back(replay(*off));
      begin = world_.time_us();
      on_us.push_back(replay(*on));
    }
    const double end = world_.time_us();
    world_.barrier();
    const std::lock_guard lock(mutex);
    measured.machine = world_.machine().name;
    measured.off_us = std::max(measured.off_us, median(off_us));
    measured.on_us = std::max(measured.on_us, median(on_us));
    measured.begin_us = std::min(measured.begin_us, begin);
    measured.end_us = std::max(measured.end_us, end);
  }

 private:
  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_.native()); }

  std::unique_ptr<cuda::Graph> graph(const std::function<void()>& call, bool recorded) {
    threads_.record(world_.pe(), recorded);
    auto made = std::make_unique<cuda::Graph>(native(), [&] {
      for (int i = 0; i < calls_; ++i) call();
    });
    threads_.record(world_.pe(), false);
    return made;
  }

  double replay(cuda::Graph& graph) {
    world_.barrier();
    cuda::check(cudaEventRecord(before_, native()), "cudaEventRecord");
    graph.launch();
    cuda::check(cudaEventRecord(after_, native()), "cudaEventRecord");
    stream_.synchronize();
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, before_, after_), "cudaEventElapsedTime");
    return static_cast<double>(ms) * 1000 / calls_;
  }

  CudaThreads& threads_;
  World& world_;
  Stream& stream_;
  int calls_;
  int rounds_;
  cudaEvent_t before_ = nullptr, after_ = nullptr;  // as long as the process
};

/// The second of two calls in the simulator. `prepare(world, stream)` gives what enqueues a call.
template <class Prepare>
trace::Timeline predicted_call(const std::string& machine, int pes, const Prepare& prepare) {
  SimOptions options;
  options.phantom = true;
  options.record = true;
  Simulation simulation(load_machine(machine), pes, options);
  double begin = 1e300;
  double end = 0;
  simulation.run([&](World& world) {
    Stream stream = world.make_stream("main");
    const auto call = prepare(world, stream);
    for (int i = 0; i < 2; ++i) {
      world.barrier();
      if (i == 1) begin = std::min(begin, world.time_us());
      call();
      stream.synchronize();
      end = std::max(end, world.time_us());
    }
  });
  return trace::cut(simulation.timeline(), picoseconds(begin), picoseconds(end));
}

/// `run(pes, folder)` on two and on four GPUs, as far as there are so many; the exit code.
inline int check_timelines(int argc, char** argv, const std::function<void(int, const std::string&)>& run) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string folder = argc > 1 ? argv[1] : ".";
  const int devices = cuda_devices();
  try {
    for (const int pes : {2, 4})
      if (pes <= devices) run(pes, folder);
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
    return 1;
  }
  std::printf("%d failed\n", failures);
  return failures > 0 || devices < 2 ? 1 : 0;
}

}  // namespace tandem::test
