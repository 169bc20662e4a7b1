#pragma once
/// The signals of a simulated GEMM's blocks.

#include "sim/device/role.h"

namespace tandem::sim {

/// Blocks until `word` is at least `value`. Reads by the tensor-memory engine are ordered behind it, too.
void await_gemm_signal(Role& role, const Signal* word, Epoch value, Site site);

/// Sends a signal that releases the earlier stores of `role` and arrives at `at`.
void send_gemm_signal(Role& role, const SignalUpdate& update, Time at, Site site);

}  // namespace tandem::sim
