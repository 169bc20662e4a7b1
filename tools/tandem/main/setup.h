#pragma once
/// The simulated machine that the arguments describe.

#include <string>

#include "tandem/machine.h"
#include "tandem/simulation.h"
#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// The place of a run.
struct Setup {
  Machine machine;
  int pes = 0;
  SimOptions options;
};

/// Throws InvalidArgument for an invalid machine, and for nodes and PEs that contradict each other or the machine.
Setup make_setup(const Arguments& arguments);

/// Returns the assumption of a run beyond the machine model in one line, or "".
std::string assumption_of(const Setup& setup);

/// Returns the largest memory of a PE, at most `wanted`, if so many PEs are simulated. They share this process's
/// address space.
Size addresses_for(Size wanted, int pes);

/// Returns the bytes of memory of this computer.
double computer_memory();

/// Gives each PE room for `bytes_per_pe` of user buffers and for the memory of a plan. Throws InvalidArgument if real
/// data would not fit into this computer's memory.
void reserve_memory(Setup& setup, double bytes_per_pe);

}  // namespace tandem::cli
