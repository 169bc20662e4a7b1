#pragma once
/// The collectives' kernels for GPUs, one function for each .cu file of this folder. Several files keep compile times
/// short and compile in parallel.

namespace tandem::cuda {

void register_all_reduce();
void register_all_reduce_norm();
void register_merge_heads();
void register_all_reduce_steps();
void register_reduce();
void register_move();
void register_copies();

// The variants that record their operations, for timelines.
void register_profiled_all_reduce();
void register_profiled_reduce();
void register_profiled_move();

}  // namespace tandem::cuda
