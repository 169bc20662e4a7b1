#pragma once
/// From the arguments to a simulated machine.

#include <string>

#include "tandem/machine.h"
#include "tandem/simulation.h"
#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// Where a run takes place.
struct Setup {
  Machine machine;
  int pes = 0;
  SimOptions options;
};

/// Throws InvalidArgument for a machine that is none, and for nodes and PEs that contradict each other or the machine.
Setup make_setup(const Arguments& arguments);

/// Returns the assumption that a run makes beyond the machine model, in one line; empty: none.
std::string assumption_of(const Setup& setup);

/// The bytes that a PE's memory may have where as many PEs as these are simulated: addresses of this process are what
/// they share. At most `wanted`.
Size addresses_for(Size wanted, int pes);

/// The bytes of memory that this computer has.
double computer_memory();

/// Gives each PE room for `bytes_per_pe` of the user's buffers and for what a plan needs beside them. Throws
/// InvalidArgument where real data would not fit into this computer's memory.
void reserve_memory(Setup& setup, double bytes_per_pe);

}  // namespace tandem::cli
