#pragma once
/// The recording of a GEMM: its roles add their operations to one list.

#include "tandem/impl/cuda/profiler.cuh"

namespace tandem::cuda {

class GemmProfiler {
 public:
  /// `count` is borrowed shared memory. Without an area nothing is recorded.
  __device__ GemmProfiler(const RecordArea& area, RecordCount* count) : area_(area), count_(count) {}

  __device__ bool is_on() const { return area_.records != nullptr; }
  __device__ std::uint64_t now() const { return is_on() ? global_timer() : 0; }
  /// Records an operation from `begin` to now. Role 0 is the block.
  __device__ void add(int role, const Subject& subject, std::uint64_t begin) const {
    if (is_on()) Profiler(area_, count_).add_next(role, subject, begin);
  }
  /// Records the block's life, after all roles have added their operations.
  __device__ void finish(std::uint64_t begin) const {
    const Profiler profiler(area_, count_);
    const unsigned operations = profiler.take_back().slots;
    profiler.finish(begin, {operations, operations});
  }

 private:
  const RecordArea& area_;
  RecordCount* const count_;
};

}  // namespace tandem::cuda
