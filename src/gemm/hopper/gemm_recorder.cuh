#pragma once
/// What a GEMM writes down of itself where it is recorded: its roles add to one list.

#include "tandem/impl/cuda/recorder.cuh"

namespace tandem::cuda {

class GemmRecorder {
 public:
  /// `count`: in shared memory, lent. Without an area nothing is recorded.
  __device__ GemmRecorder(const RecordArea& area, RecordCount* count) : area_(area), count_(count) {}

  __device__ bool is_on() const { return area_.records != nullptr; }
  __device__ std::uint64_t now() const { return is_on() ? global_timer() : 0; }
  /// An operation from `begin` to now; role 0 is the block.
  __device__ void add(int role, const Subject& subject, std::uint64_t begin) const {
    if (is_on()) Recorder(area_, count_).add_next(role, subject, begin);
  }
  /// The block's life; when all roles have added what they had.
  __device__ void finish(std::uint64_t begin) const {
    const Recorder recorder(area_, count_);
    const unsigned operations = recorder.take_back().slots;
    recorder.finish(begin, {operations, operations});
  }

 private:
  const RecordArea& area_;
  RecordCount* const count_;
};

}  // namespace tandem::cuda
