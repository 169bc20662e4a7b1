#pragma once
/// The operators' kernels for GPUs, one function for each .cu file of this folder.

namespace tandem::cuda {

void register_operator_steps();
void register_operators();

}  // namespace tandem::cuda
