// Functions that Tandem does not have: each says so once in the log, sets its outputs, and returns ncclInvalidUsage.
#include <fmt/format.h>

#include <mutex>
#include <set>

#include "base/log.h"
#include "bindings/nccl/error.h"
#include "bindings/nccl/fallback.h"
#include "bindings/nccl/functions/exports.h"
#include "bindings/nccl/group.h"

namespace {

constexpr ncclTeam kNoTeam{0, -1, 0};

ncclResult_t refused(const char* function) {
  static auto& mutex = *new std::mutex;
  static auto& told = *new std::set<std::string>;
  const std::string text = fmt::format("{}: Tandem's NCCL interface does not have it", function);
  {
    const std::lock_guard lock(mutex);
    if (told.insert(function).second) tandem::log_line(tandem::LogLevel::kWarn, [&] { return std::string(text); });
  }
  return tandem::nccl::failed_in_group(tandem::nccl::reported({ncclInvalidUsage, text}));
}

/// Sets an output that a function would write.
template <class T>
void set(T* output, T value) {
  if (output != nullptr) *output = value;
}

}  // namespace

TANDEM_NCCL_EXPORT(DevCommCreate);
ncclResult_t pncclDevCommCreate(ncclComm_t comm, const void* requirements, void* made) {
  TANDEM_NCCL_FORWARD(DevCommCreate, comm, ncclInvalidUsage, *real, requirements, made);
  return refused("ncclDevCommCreate");
}

TANDEM_NCCL_EXPORT(DevCommDestroy);
ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const void* made) {
  TANDEM_NCCL_FORWARD(DevCommDestroy, comm, ncclInvalidUsage, *real, made);
  return refused("ncclDevCommDestroy");
}

TANDEM_NCCL_EXPORT(GetLsaMultimemDevicePointer);
ncclResult_t pncclGetLsaMultimemDevicePointer(ncclWindow_t, std::size_t, void** pointer) {
  set<void*>(pointer, nullptr);
  return refused("ncclGetLsaMultimemDevicePointer");
}

TANDEM_NCCL_EXPORT(GetMultimemDevicePointer);
ncclResult_t pncclGetMultimemDevicePointer(ncclWindow_t, std::size_t, void*, void** pointer) {
  set<void*>(pointer, nullptr);
  return refused("ncclGetMultimemDevicePointer");
}

TANDEM_NCCL_EXPORT(GinBarrierCreateRequirement);
ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam team, int barriers, void* handle,
                                              void* requirement) {
  TANDEM_NCCL_FORWARD(GinBarrierCreateRequirement, comm, ncclInvalidUsage, *real, team, barriers, handle, requirement);
  return refused("ncclGinBarrierCreateRequirement");
}

TANDEM_NCCL_EXPORT(LsaBarrierCreateRequirement);
ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam, int, void*, void*) {
  return refused("ncclLsaBarrierCreateRequirement");
}

TANDEM_NCCL_EXPORT(LLA2ACreateRequirement);
ncclResult_t pncclLLA2ACreateRequirement(int, int, void*, void*) { return refused("ncclLLA2ACreateRequirement"); }

TANDEM_NCCL_EXPORT(LLA2ACalcSlots);
int pncclLLA2ACalcSlots(int, int) {
  refused("ncclLLA2ACalcSlots");
  return 0;
}

TANDEM_NCCL_EXPORT(CftBarrierCreateRequirement);
ncclResult_t pncclCftBarrierCreateRequirement(ncclTeam, int, void*, void*) {
  return refused("ncclCftBarrierCreateRequirement");
}

TANDEM_NCCL_EXPORT(TeamCft);
ncclTeam pncclTeamCft(ncclComm_t comm, int mode) {
  TANDEM_NCCL_FORWARD(TeamCft, comm, kNoTeam, *real, mode);
  refused("ncclTeamCft");
  return kNoTeam;
}

TANDEM_NCCL_EXPORT(TeamCftMultimem);
ncclTeam pncclTeamCftMultimem(ncclComm_t comm) {
  TANDEM_NCCL_FORWARD(TeamCftMultimem, comm, kNoTeam, *real);
  refused("ncclTeamCftMultimem");
  return kNoTeam;
}

TANDEM_NCCL_EXPORT(GetMultimemDeviceLeInfo);
ncclResult_t pncclGetMultimemDeviceLeInfo(ncclWindow_t, std::size_t, void*, std::size_t* offset) {
  set<std::size_t>(offset, 0);
  return refused("ncclGetMultimemDeviceLeInfo");
}

TANDEM_NCCL_EXPORT(GetCftDeviceLeInfo);
ncclResult_t pncclGetCftDeviceLeInfo(ncclWindow_t, std::size_t, int, ncclTeam, void*, std::size_t* offset) {
  set<std::size_t>(offset, 0);
  return refused("ncclGetCftDeviceLeInfo");
}

TANDEM_NCCL_EXPORT(GetPeerDeviceLeInfo);
ncclResult_t pncclGetPeerDeviceLeInfo(ncclWindow_t, std::size_t, int, void*, std::size_t* offset) {
  set<std::size_t>(offset, 0);
  return refused("ncclGetPeerDeviceLeInfo");
}
