#pragma once
/// The options of `tandem doctor`.

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

struct DoctorOptions : OutputOptions {
  int process = 0;  ///< report which NCCL it calls; 0: report on the machine
};

}  // namespace tandem::cli
