#pragma once
/// Made choices of experts: how tokens are routed in tests and in measured runs.

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/range.h"

namespace tandem::kernels {

/// Throws InvalidArgument unless it is balanced, random, zipf:S with S from 0 to 10, one, none or ragged.
void check_expert_routing(const std::string& routing);

/// Returns the tokens of a PE: `most`, except that with "ragged" PE 0 has none, and the others have different numbers.
Size tokens_of_pe(const std::string& routing, int pe, Size most, std::uint64_t seed);

/// Returns the ids [tokens][top_k] of a PE's tokens.
///
///   balanced   every expert gets as many tokens, as far as they divide
///   random     different experts, each as likely
///   zipf:S     different experts, of which number i is as likely as 1 / (i + 1)^S
///   one        the first experts / PEs experts, but at least one: PE 0 holds them
///   none       -1
///   ragged     any expert, also twice in a token, or -1
std::vector<std::int32_t> expert_choices(const std::string& routing, int experts, int pes, int top_k, int pe,
                                         Size tokens, std::uint64_t seed);

}  // namespace tandem::kernels
