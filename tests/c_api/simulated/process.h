#pragma once
/// Programs in C on simulated GPUs: the C API's own sources, with a simulated world where CudaProcess would be.

#include <functional>

#include "tandem.h"
#include "tandem/world.h"

namespace tandem::test {

/// One PE of such a program.
struct CPeer {
  World& simulated;     ///< for memory that is not the C API's, and to look at results
  tandem_world* world;  ///< made with tandem_world_create
  int pe;
  int n;
  void* stream;  ///< a cudaStream_t of the simulated world
};

/// Runs `program` on each of `pes` PEs, which destroys plans that it made; the worlds are destroyed behind it.
void run_in_c(int pes, const std::function<void(CPeer&)>& program, bool any_memory = false);

/// "": such a status with a text that contains `part`; else what there is instead.
std::string unlike(tandem_status status, tandem_status expected, const std::string& part = "");

}  // namespace tandem::test
