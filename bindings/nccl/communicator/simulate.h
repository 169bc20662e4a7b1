#pragma once
/// The time that a group of calls would take, by the machine model.

#include "bindings/nccl/communicator.h"

namespace tandem::nccl {

/// Returns the predicted microseconds of the work of one rank, if all ranks do as it does. Messages go to every rank's
/// peer at the same distance.
double predicted_us(const Work& work, const Machine& machine, int rank, int ranks);

}  // namespace tandem::nccl
