#pragma once
/// The settings of a communicator, from a configuration of any version.

#include <string>

#include "bindings/nccl/abi.h"

namespace tandem::nccl {

struct Settings {
  bool is_blocking = true;
  /// Most blocks of a call's kernel (maxCTAs).
  int max_blocks = 32;
  /// All that the program has set, for the real NCCL; its texts follow.
  ncclConfig_t config = undefined_config();
  std::string net_name, name;
};

/// Returns `inherited` with what the configuration sets; null sets nothing. Throws InvalidArgument with the field's
/// name.
Settings settings_of(const ncclConfig_t* config, const Settings& inherited = {});

}  // namespace tandem::nccl
