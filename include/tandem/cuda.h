#pragma once
/// Worlds whose PEs run on GPUs, and on nothing else: worlds.h with its device kind given.
///
///   CudaProcess process(placement_from_environment());         // or CudaProcess(id, pe, pes)
///   CudaThreads threads(cuda_devices());                       // a PE on each GPU

#include <memory>

#include "tandem/worlds.h"

namespace tandem {

using CudaOptions = WorldOptions;

/// GPUs of this process; 0 where there is no driver. Never throws.
int cuda_devices();

/// See WorldThreads. CudaOptions::kind does not matter.
class CudaThreads : public WorldThreads {
 public:
  explicit CudaThreads(int pes, const CudaOptions& options = {});
};

/// See WorldProcess. CudaOptions::kind does not matter.
class CudaProcess : public WorldProcess {
 public:
  CudaProcess(const UniqueId& id, int pe, int pes, const CudaOptions& options = {});
  explicit CudaProcess(const Placement& place, const CudaOptions& options = {});
  explicit CudaProcess(WorldProcess&& process) : WorldProcess(std::move(process)) {}

  /// See WorldProcess::split.
  std::unique_ptr<CudaProcess> split(int color, int key, const CudaOptions& options = {});
};

}  // namespace tandem
