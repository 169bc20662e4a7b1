#pragma once
/// A plan of all_reduce_norm as C programs hold it.

#include <memory>

#include "tandem/layer/all_reduce_norm.h"

namespace tandem::c {

class NormPlan {
 public:
  /// `any_memory`: buffers lie anywhere. An algorithm whose peers access them then works on copies in the heap.
  NormPlan(World& world, const AllReduceNormOptions& options, bool any_memory);
  void run(Stream& stream, const AllReduceNormCall& call);

 private:
  /// Heap memory in place of the buffers that peers access. The sum takes the place of the input.
  struct Copies {
    Symm<std::byte> in;
    Symm<std::byte> out;
    Symm<float> scales;
  };
  void allocate();
  void run_on_copies(Stream& stream, const AllReduceNormCall& call);

  World world_;
  std::unique_ptr<AllReduceNormPlan> plan_;
  bool copies_ = false;
  Copies copy_;
  detail::PlanMemory memory_;
};

}  // namespace tandem::c
