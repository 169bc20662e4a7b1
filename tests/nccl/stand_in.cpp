// Stands in for the real NCCL: it prints its calls. As NCCL's, its calls of itself may reach another library's symbols.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bindings/nccl/abi.h"

struct ncclComm {
  int ranks;
};

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

ncclResult_t say(const char* text) {
  std::printf("stand-in %s\n", text);
  std::fflush(stdout);
  return ncclSuccess;
}

}  // namespace

EXPORT ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  std::strcpy(id->internal, "real");
  return ncclSuccess;
}

EXPORT ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int, ncclConfig_t* config) {
  if (std::getenv("TANDEM_STAND_IN_FAILS") != nullptr) return ncclUnhandledCudaError;
  *comm = new ncclComm{nranks};
  std::printf("stand-in init %d id %s%s\n", nranks, id.internal, config->blocking == 1 ? "" : ", does not block");
  std::fflush(stdout);
  return ncclSuccess;
}

EXPORT ncclResult_t pncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->ranks;
  std::printf("stand-in count %d\n", comm->ranks);
  std::fflush(stdout);
  return ncclSuccess;
}

EXPORT ncclResult_t pncclAllReduce(const void*, void* out, std::size_t count, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t comm, cudaStream_t) {
  say("sum");
  int ranks = 0;
  if (ncclCommCount(comm, &ranks) != ncclSuccess) return ncclInternalError;
  for (std::size_t i = 0; i < count; ++i) static_cast<int*>(out)[i] = 77;
  return ncclSuccess;
}

EXPORT ncclResult_t pncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return say("error 0");
}

EXPORT ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return say("destroy");
}

EXPORT ncclResult_t pncclCommAbort(ncclComm_t comm) {
  delete comm;
  return say("abort");
}

EXPORT ncclResult_t pncclGroupStart() { return say("group start"); }
EXPORT ncclResult_t pncclGroupEnd() { return say("group end"); }
EXPORT const char* pncclGetLastError(ncclComm_t) { return "no GPU here"; }
EXPORT __attribute__((weak, alias("pncclCommCount"))) ncclResult_t ncclCommCount(ncclComm_t comm, int* count);
