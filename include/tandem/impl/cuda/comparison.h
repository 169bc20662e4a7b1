#pragma once
/// The comparison of calls between the PEs of a team (detail::CallComparison), on GPUs and on CPUs.

#include "tandem/impl/config.h"
#include "tandem/signal.h"

namespace tandem::cuda {

/// Returns the value by which a PE notifies its team of its call: half of the number `call`, and the signature.
TANDEM_DEVICE constexpr Epoch signal_value_of(Epoch call, std::uint32_t signature) { return call << 32 | signature; }
/// Returns whether a word holds the value of this call. Else it holds the value of two calls before, or 0 before the
/// first. So half of the number is enough, even when it wraps around.
TANDEM_DEVICE constexpr bool is_of_call(Epoch sent, Epoch call) { return sent >> 32 == (call & 0xFFFF'FFFF); }

/// One PE's call, sent to its team and compared. `words` has two words and two slots for each PE.
struct Comparison {
  Signals words;
  Epoch* calls = nullptr;
  std::uint32_t signature = 0;
  Epoch count = 0;
};

}  // namespace tandem::cuda
