#pragma once
/// The PEs of a run on real devices: threads of this process, or, where a launcher's variables are set
/// (docs/reference/worlds.md), one PE a process.

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

struct JobPlace {
  int pes = 0;
  bool by_processes = false;
  bool speaks = true;  ///< this process has PE 0: it prints and writes
};

/// `otherwise`: PEs where neither a launcher nor --pes gives their number. Throws InvalidArgument where both do, and
/// differ.
JobPlace place_of_job(const Arguments& arguments, int otherwise);

/// Writes a note if a launcher started several processes, each of which simulates all PEs by itself.
void note_simulations_of_a_job();

}  // namespace tandem::cli
