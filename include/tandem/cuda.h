#pragma once
/// Runs a host program on real GPUs, one thread of this process for each PE: the counterpart of simulation.h.
///
///   CudaThreads threads(cuda_devices());                       // a PE on each GPU
///   threads.run([](World& world) { ... });                     // the same program that runs in the simulator
///
/// PEs may share a GPU where all blocks of all of them are resident at once.

#include <functional>
#include <memory>

#include "tandem/world.h"

namespace tandem {

struct CudaOptions {
  /// Capacity of each PE's symmetric heap for data.
  Size heap_bytes = Size{4} << 30;
  /// How long a wait on the device may last before it gives up; the run then throws Timeout.
  double timeout_s = 30;
  /// A kernel's blocks may take their places before the stream's previous kernel ends (programmatic dependent launch).
  /// Not where PEs share a GPU: there, waiting blocks could take the places of blocks that others wait for.
  bool early_launch = true;
};

/// GPUs of this process; 0 where there is no driver. Never throws.
int cuda_devices();

class CudaThreads {
 public:
  /// Throws InvalidArgument (pes below 1), Unsupported (no GPU, no driver, GPUs that do not reach each other),
  /// OutOfMemory.
  explicit CudaThreads(int pes, const CudaOptions& options = {});
  ~CudaThreads();

  /// Runs `program` on all PEs and joins. Rethrows the first error of any PE. May be called again after a run that did
  /// not fail.
  void run(const std::function<void(World&)>& program);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
