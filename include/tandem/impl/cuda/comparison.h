#pragma once
/// How the PEs of a team compare what they call (detail::CallComparison), on GPUs and on CPUs.

#include "tandem/impl/config.h"
#include "tandem/signal.h"

namespace tandem::cuda {

/// What a PE tells its team of its call number `call`: half of the number, and what it calls.
TANDEM_DEVICE constexpr Epoch signal_value_of(Epoch call, std::uint32_t signature) { return call << 32 | signature; }
/// Whether a word holds what was told of this call: it does, or what was told two calls before, or nothing (0) before
/// the first. So half of the number is enough, where it comes round too.
TANDEM_DEVICE constexpr bool is_of_call(Epoch sent, Epoch call) { return sent >> 32 == (call & 0xFFFF'FFFF); }

/// What one PE calls, told to its team and compared: `words` has two words and two slots for each PE.
struct Comparison {
  Signals words;
  Epoch* calls = nullptr;
  std::uint32_t signature = 0;
  Epoch count = 0;
};

}  // namespace tandem::cuda
