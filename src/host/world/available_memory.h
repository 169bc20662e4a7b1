#pragma once
/// The memory that this process may still take.

#include <string>

#include "tandem/range.h"

namespace tandem::host {

struct AvailableMemory {
  Size bytes = 0;
  std::string limit;  ///< "of the computer", or of the group of processes
};

/// The least of what the computer has left and of what the process's control group may take. Asks the system.
AvailableMemory available_memory();

/// The same by the texts of these files; a file that is not there is empty. For tests.
AvailableMemory available_memory(const std::string& meminfo, const std::string& group_most,
                                 const std::string& group_used, const std::string& group_details);

}  // namespace tandem::host
