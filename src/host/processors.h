#pragma once
/// The processors of this process, and its control group.

#include <string>

namespace tandem::host {

/// Returns the text of a file, empty if it cannot be read.
std::string contents(const std::string& path);
/// Returns the text of a file of this process's control group in version 2 of them; empty: there is none.
std::string group_file(const std::string& name);

/// Returns the number of processors to which the calling thread's affinity allows it; 0 if it is not known. The
/// standard library counts those outside of the affinity, too.
int processors_of_affinity();
/// Returns the number of processors that this process may use, at least 1. These are the processors of its
/// affinity, but no more than its control group's share of time.
int processors();
/// The same for given ones. `cpu_max` is the text of the group's file of that name.
int processors(int of_affinity, const std::string& cpu_max);

}  // namespace tandem::host
