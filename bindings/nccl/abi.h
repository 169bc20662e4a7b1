#pragma once
/// NCCL's C interface, declared from its public documentation: names, numbers, layouts and signatures. A test compares
/// them with an installed nccl.h.

#include "bindings/nccl/abi_types.h"

extern "C" {

ncclResult_t ncclGetVersion(int* version);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
void ncclResetDebugInit();

ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int nranks, int rank, int nid, ncclUniqueId* ids,
                                      ncclConfig_t* config);
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ndev, const int* devices);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config);
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* rest, ncclConfig_t* config,
                            int flags);
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* id);
ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank, ncclComm_t* grown,
                          ncclConfig_t* config);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error);
ncclResult_t ncclCommCount(ncclComm_t comm, int* count);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank);
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, std::uint64_t* value);
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* properties);

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes);
ncclResult_t ncclMemFree(void* memory);
ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t bytes, void** handle);
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle);
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* memory, std::size_t bytes, ncclWindow_t* window, int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void** memory);

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t where,
                                      ncclComm_t comm);
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclAlltoAll(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclBcast(void* data, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t ncclGather(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream);
ncclResult_t ncclScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream);
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info);

ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t* config);

ncclResult_t ncclParamBind(ncclParamHandle_t* handle, const char* key);
ncclResult_t ncclParamGetI8(ncclParamHandle_t handle, std::int8_t* value);
ncclResult_t ncclParamGetI16(ncclParamHandle_t handle, std::int16_t* value);
ncclResult_t ncclParamGetI32(ncclParamHandle_t handle, std::int32_t* value);
ncclResult_t ncclParamGetI64(ncclParamHandle_t handle, std::int64_t* value);
ncclResult_t ncclParamGetU8(ncclParamHandle_t handle, std::uint8_t* value);
ncclResult_t ncclParamGetU16(ncclParamHandle_t handle, std::uint16_t* value);
ncclResult_t ncclParamGetU32(ncclParamHandle_t handle, std::uint32_t* value);
ncclResult_t ncclParamGetU64(ncclParamHandle_t handle, std::uint64_t* value);
ncclResult_t ncclParamGetStr(ncclParamHandle_t handle, const char** value);
ncclResult_t ncclParamGet(ncclParamHandle_t handle, void* value, int most, int* length);
ncclResult_t ncclParamGetParameter(const char* key, const char** value, int* length);
ncclResult_t ncclParamGetAllParameterKeys(const char*** table, int* length);
void ncclParamDumpAll();

ncclResult_t ncclPutSignal(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
                           std::size_t offset, int signal, int context, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t* descriptions, ncclComm_t comm, cudaStream_t stream);
ncclTeam ncclTeamWorld(ncclComm_t comm);
ncclTeam ncclTeamLsa(ncclComm_t comm);
ncclTeam ncclTeamRail(ncclComm_t comm);
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam team, int rank);
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, std::size_t offset, int rank, void** pointer);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, std::size_t offset, int peer, void** pointer);

// Refused: the device communicator and multicast. Structures that Tandem never reads are void here.
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void* requirements, void* made);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void* made);
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, std::size_t offset, void** pointer);
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, std::size_t offset, void* multimem, void** pointer);
ncclResult_t ncclGetMultimemDeviceLeInfo(ncclWindow_t window, std::size_t offset, void* id, std::size_t* id_offset);
ncclResult_t ncclGetCftDeviceLeInfo(ncclWindow_t window, std::size_t offset, int peer, ncclTeam team, void* id,
                                    std::size_t* id_offset);
ncclResult_t ncclGetPeerDeviceLeInfo(ncclWindow_t window, std::size_t offset, int peer, void* id,
                                     std::size_t* id_offset);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam team, int barriers, void* handle,
                                             void* requirement);
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam team, int barriers, void* handle, void* requirement);
ncclResult_t ncclCftBarrierCreateRequirement(ncclTeam team, int barriers, void* handle, void* requirement);
ncclResult_t ncclLLA2ACreateRequirement(int blocks, int slots, void* handle, void* requirement);
int ncclLLA2ACalcSlots(int elements, int element_bytes);
ncclTeam ncclTeamCft(ncclComm_t comm, int mode);
ncclTeam ncclTeamCftMultimem(ncclComm_t comm);

// Collectives with a configuration of their own; null gives that of the communicator.
ncclResult_t ncclAllReduceConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclBroadcastConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclReduceConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                              int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclAllGatherConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclReduceScatterConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                                     ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclAlltoAllConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                                cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclGatherConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                              ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclScatterConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);

/// Returns the name and version of this library. NCCL has no such function, so programs tell the two apart by it.
const char* tandem_nccl_identity();

}  // extern "C"
