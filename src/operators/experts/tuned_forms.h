#pragma once
/// The forms of products of experts that `tandem tune` measured.

#include <string>

#include "tandem/layer/expert_gemms.h"

namespace tandem::ops {

/// Takes the tuned forms of the operators whose form is open, and the choices that both share. Returns the file that
/// has them, or nothing. All PEs call it.
std::string take_tuned_forms(World& world, ExpertGemmOptions& options);

}  // namespace tandem::ops
