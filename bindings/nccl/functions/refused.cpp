// Functions that Tandem does not have: each says so once in the log, sets its outputs, and returns ncclInvalidUsage.
#include <fmt/format.h>

#include <mutex>
#include <set>

#include "base/log.h"
#include "bindings/nccl/error.h"
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
    if (told.insert(function).second) tandem::log_line(tandem::LogLevel::kWarn, [&] { return text; });
  }
  return tandem::nccl::failed_in_group(tandem::nccl::reported({ncclInvalidUsage, text}));
}

/// Sets an output that a function would write.
template <class T>
void set(T* output, T value) {
  if (output != nullptr) *output = value;
}

}  // namespace

TANDEM_NCCL_EXPORT(CommSuspend);
ncclResult_t pncclCommSuspend(ncclComm_t, int) { return refused("ncclCommSuspend"); }

TANDEM_NCCL_EXPORT(CommResume);
ncclResult_t pncclCommResume(ncclComm_t) { return refused("ncclCommResume"); }

TANDEM_NCCL_EXPORT(CommMemStats);
ncclResult_t pncclCommMemStats(ncclComm_t, int, std::uint64_t* value) {
  set<std::uint64_t>(value, 0);
  return refused("ncclCommMemStats");
}

TANDEM_NCCL_EXPORT(CommQueryProperties);
ncclResult_t pncclCommQueryProperties(ncclComm_t, void*) { return refused("ncclCommQueryProperties"); }

TANDEM_NCCL_EXPORT(GroupSimulateEnd);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* info) {
  tandem::nccl::discard_group();
  if (info != nullptr && info->magic == kSimInfoMagic && info->size >= sizeof(ncclSimInfo_t)) info->estimatedTime = -1;
  return refused("ncclGroupSimulateEnd");
}

TANDEM_NCCL_EXPORT(PutSignal);
ncclResult_t pncclPutSignal(const void*, std::size_t, ncclDataType_t, int, ncclWindow_t, std::size_t, int, int,
                            unsigned int, ncclComm_t, cudaStream_t) {
  return refused("ncclPutSignal");
}

TANDEM_NCCL_EXPORT(Signal);
ncclResult_t pncclSignal(int, int, int, unsigned int, ncclComm_t, cudaStream_t) { return refused("ncclSignal"); }

TANDEM_NCCL_EXPORT(WaitSignal);
ncclResult_t pncclWaitSignal(int, void*, ncclComm_t, cudaStream_t) { return refused("ncclWaitSignal"); }

TANDEM_NCCL_EXPORT(DevCommCreate);
ncclResult_t pncclDevCommCreate(ncclComm_t, const void*, void*) { return refused("ncclDevCommCreate"); }

TANDEM_NCCL_EXPORT(DevCommDestroy);
ncclResult_t pncclDevCommDestroy(ncclComm_t, const void*) { return refused("ncclDevCommDestroy"); }

TANDEM_NCCL_EXPORT(GetLsaDevicePointer);
ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t, std::size_t, int, void** pointer) {
  set<void*>(pointer, nullptr);
  return refused("ncclGetLsaDevicePointer");
}

TANDEM_NCCL_EXPORT(GetPeerDevicePointer);
ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t, std::size_t, int, void** pointer) {
  set<void*>(pointer, nullptr);
  return refused("ncclGetPeerDevicePointer");
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
ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam, int, void*, void*) {
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

TANDEM_NCCL_EXPORT(TeamWorld);
ncclTeam pncclTeamWorld(ncclComm_t) {
  refused("ncclTeamWorld");
  return kNoTeam;
}

TANDEM_NCCL_EXPORT(TeamLsa);
ncclTeam pncclTeamLsa(ncclComm_t) {
  refused("ncclTeamLsa");
  return kNoTeam;
}

TANDEM_NCCL_EXPORT(TeamRail);
ncclTeam pncclTeamRail(ncclComm_t) {
  refused("ncclTeamRail");
  return kNoTeam;
}

TANDEM_NCCL_EXPORT(TeamRankToWorld);
int pncclTeamRankToWorld(ncclComm_t, ncclTeam, int) {
  refused("ncclTeamRankToWorld");
  return -1;
}

TANDEM_NCCL_EXPORT(TeamRankToLsa);
int pncclTeamRankToLsa(ncclComm_t, ncclTeam, int) {
  refused("ncclTeamRankToLsa");
  return -1;
}
