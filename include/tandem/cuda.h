#pragma once
/// Worlds whose PEs run on GPUs, and on nothing else: worlds.h with its device kind given.
///
///   CudaProcess process(placement_from_environment());         // or CudaProcess(id, pe, pes)
///   CudaThreads threads(cuda_devices());                       // a PE on each GPU

#include <memory>

#include "tandem/worlds.h"

namespace tandem {

/// Options of a world on GPUs.
using CudaOptions = WorldOptions;

/// Returns the number of GPUs of this process, 0 without a driver. Never throws.
int cuda_devices();

/// See WorldThreads. CudaOptions::kind does not matter.
class CudaThreads : public WorldThreads {
 public:
  /// See WorldThreads::WorldThreads.
  explicit CudaThreads(int pes, const CudaOptions& options = {});
};

/// See WorldProcess. CudaOptions::kind does not matter.
class CudaProcess : public WorldProcess {
 public:
  /// See WorldProcess::WorldProcess.
  CudaProcess(const UniqueId& id, int pe, int pes, const CudaOptions& options = {});
  /// Does the same for the place that a launcher gave this process.
  explicit CudaProcess(const Placement& place, const CudaOptions& options = {});
  /// Takes over a world on GPUs.
  explicit CudaProcess(WorldProcess&& process) : WorldProcess(std::move(process)) {}

  /// See WorldProcess::split.
  std::unique_ptr<CudaProcess> split(int color, int key, const CudaOptions& options = {});
};

}  // namespace tandem
