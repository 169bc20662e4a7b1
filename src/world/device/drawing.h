#pragma once
/// The timeline of a world's recorded work.

#include <vector>

#include "tandem/advanced/profile.h"
#include "trace/gpu/gpu_part.h"
#include "trace/gpu/gpu_profile.h"
#include "world/device/profiler.h"

namespace tandem::world {

struct Drawing {
  trace::Timeline timeline;
  ProfileInfo info;
};

/// Draws the work of all processes. `profile` has all but the work and what the address book gives.
Drawing draw(trace::GpuProfile profile, const AddressBook& book, const std::vector<trace::GpuPart>& parts);

}  // namespace tandem::world
