#pragma once
/// The options of `tandem doctor`.

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

struct DoctorOptions : OutputOptions {};

}  // namespace tandem::cli
