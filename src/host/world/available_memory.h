#pragma once
/// The memory that this process may still take.

#include <string>

#include "tandem/range.h"

namespace tandem::host {

struct AvailableMemory {
  Size bytes = 0;
  std::string limit;  ///< the limit's owner: "of this computer", or of the control group
};

/// Returns the smaller of two amounts: the computer's free memory, and the rest of the limit of the process's control
/// group. Reads both from the system.
AvailableMemory available_memory();

/// Returns the same from the texts of the system's files, for tests. The text of a missing file is empty.
AvailableMemory available_memory(const std::string& meminfo, const std::string& group_most,
                                 const std::string& group_used, const std::string& group_details);

}  // namespace tandem::host
