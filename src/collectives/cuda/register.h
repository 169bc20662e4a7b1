#pragma once
/// The collectives' kernels compiled for GPUs, a function for each .cu file of this folder. Splitting them keeps every
/// file's compile time bearable and lets them compile side by side.

namespace tandem::cuda {

void register_all_reduce();
void register_all_reduce_steps();
void register_reduce();
void register_move();
void register_copies();

// The forms that record what they do, for timelines.
void register_recorded_all_reduce();
void register_recorded_reduce();
void register_recorded_move();

}  // namespace tandem::cuda
