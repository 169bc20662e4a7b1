#pragma once
/// Measures the GPUs of this machine and what joins them, from one thread, with memory and streams of its own.

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <vector>

#include "tandem/range.h"

namespace tandem::cli {

class Probe {
 public:
  /// All GPUs. Enables loads and stores between those that can. Throws Unsupported without a GPU.
  Probe();
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  int gpus() const { return static_cast<int>(gpus_.size()); }
  bool reaches(int from, int to) const;

  /// GB/s of a copy by copy engine; `from == to`: within a GPU.
  double copy_gbps(int from, int to, Size bytes) const;
  /// GB/s out of each GPU when all copy to all others at once.
  double copy_all_to_all_gbps(Size bytes) const;
  /// GB/s of stores from `from` to `to`'s memory, and of loads by `from` from there.
  double store_gbps(int from, int to, int blocks, Size bytes) const;
  double load_gbps(int from, int to, int blocks, Size bytes) const;
  /// The same of stores out of each GPU when all store to all others.
  double store_all_to_all_gbps(int blocks, Size bytes) const;
  /// GB/s read plus written of a copy by `blocks` blocks within a GPU.
  double local_gbps(int gpu, int blocks, Size bytes) const;

  /// Microseconds one way: a packet (`ordered`: a signal) from GPU to GPU; nothing where nobody answered.
  double one_way_us(int from, int to, bool ordered) const;
  double local_one_way_us(int gpu) const;
  /// A dependent load by `from` from `to`'s memory.
  double load_us(int from, int to) const;
  /// A copy of eight bytes after another one in a stream, before a byte moves.
  double copy_startup_us(int from, int to) const;
  /// An empty kernel after another: in a stream, in a graph, in a graph with programmatic dependent launch.
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
