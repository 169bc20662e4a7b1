#pragma once
/// Measures the GPUs of this machine and their links, from one thread, with its own memory and streams.

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <vector>

#include "tandem/range.h"

namespace tandem::cli {

class Probe {
 public:
  /// Uses all GPUs, and enables peer access where possible. Throws Unsupported without a GPU.
  Probe();
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  int gpus() const { return static_cast<int>(gpus_.size()); }
  bool reaches(int from, int to) const;

  /// Returns GB/s of a copy by copy engine; `from == to`: within a GPU.
  double copy_gbps(int from, int to, Size bytes) const;
  /// Returns GB/s of stores from `from` to memory of `to`, and of loads by `from` from there.
  double store_gbps(int from, int to, int blocks, Size bytes) const;
  double load_gbps(int from, int to, int blocks, Size bytes) const;
  /// Returns GB/s of stores out of each GPU when all store to all others at once.
  double store_all_to_all_gbps(int blocks, Size bytes) const;
  /// Returns GB/s (read plus written) of a copy by `blocks` blocks within a GPU.
  double local_gbps(int gpu, int blocks, Size bytes) const;

  /// Returns the microseconds of a packet (`ordered`: a signal) in one direction, or nothing without an answer.
  double one_way_us(int from, int to, bool ordered) const;
  double local_one_way_us(int gpu) const;
  /// Returns the time of a dependent load by `from` from memory of `to`.
  double load_us(int from, int to) const;
  /// Returns the time before the first byte, for a copy of eight bytes after another one in a stream.
  double copy_startup_us(int from, int to) const;
  /// Returns the time of an empty kernel after another: in a stream, in a graph, in a graph with programmatic dependent
  /// launch.
  double launch_us() const;
  double graph_node_us(bool early) const;

  /// Bytes of each of a GPU's two buffers.
  static constexpr Size kBytes = Size{512} << 20;

 private:
  struct Gpu;
  double seconds(int gpu, const std::function<void(cudaStream_t)>& work) const;
  double seconds_of_all(const std::function<void(int, cudaStream_t)>& work) const;

  std::vector<std::unique_ptr<Gpu>> gpus_;
};

}  // namespace tandem::cli
