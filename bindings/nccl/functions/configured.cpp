// Collectives with a configuration of their own.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "bindings/nccl/fallback.h"
#include "bindings/nccl/functions/exports.h"
#include "bindings/nccl/group.h"

namespace {

using tandem::InvalidArgument;
using tandem::nccl::Failed;

void check_number(int value, int least, int most, const char* field) {
  if (value != kConfigUndefined && (value < least || value > most))
    throw InvalidArgument(fmt::format("config.{}: {} given, allowed are {} to {}", field, value, least, most));
}

/// Throws unless the call can be made as the configuration asks. Limits on blocks are hints, which change no result.
void check(const ncclCollConfig_t* given) {
  if (given == nullptr) return;
  constexpr std::size_t least = offsetof(ncclCollConfig_t, ext);
  if (given->size < least)
    throw InvalidArgument(fmt::format("config.size: {} given, allowed is at least {}", given->size, least));
  if (given->magic != kConfigMagic)
    throw InvalidArgument(fmt::format("config.magic: {:#x} given, allowed is {:#x}", given->magic, kConfigMagic));
  ncclCollConfig_t config{};
  config.minCTAs = config.maxCTAs = config.nvlsCTAs = config.cgaClusterSize = config.CTAPolicy = kConfigUndefined;
  std::memcpy(&config, given, std::min(given->size, sizeof(config)));
  check_number(config.maxCTAs, 1, INT_MAX, "maxCTAs");
  check_number(config.minCTAs, 1, config.maxCTAs == kConfigUndefined ? INT_MAX : config.maxCTAs, "minCTAs");
  check_number(config.nvlsCTAs, 1, INT_MAX, "nvlsCTAs");
  check_number(config.cgaClusterSize, 0, 8, "cgaClusterSize");
  check_number(config.CTAPolicy, 0, kMostCtaPolicy, "CTAPolicy");
  if (config.algSelection != nullptr && *config.algSelection != '\0' && config.forceAlgSelection != 0)
    throw Failed(ncclInvalidUsage,
                 fmt::format("config.algSelection: '{}' given, allowed is none, or forceAlgSelection 0: Tandem's "
                             "algorithms are others",
                             config.algSelection));
  if (config.launchCompletionEvent != nullptr)
    throw Failed(ncclInvalidUsage, "config.launchCompletionEvent: an event given, allowed is NULL");
}

/// Makes the call without the configuration if it can be as this asks.
template <class Call>
ncclResult_t configured(const ncclCollConfig_t* config, const Call& call) {
  const ncclResult_t result = tandem::nccl::guarded([&] {
    check(config);
    return ncclSuccess;
  });
  return result == ncclSuccess ? call() : tandem::nccl::failed_in_group(result);
}

}  // namespace

TANDEM_NCCL_EXPORT(AllReduceConfig);
ncclResult_t pncclAllReduceConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  TANDEM_NCCL_FORWARD(AllReduceConfig, comm, ncclInvalidUsage, in, out, count, type, op, *real, stream, config);
  return configured(config, [&] { return pncclAllReduce(in, out, count, type, op, comm, stream); });
}

TANDEM_NCCL_EXPORT(BroadcastConfig);
ncclResult_t pncclBroadcastConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  TANDEM_NCCL_FORWARD(BroadcastConfig, comm, ncclInvalidUsage, in, out, count, type, root, *real, stream, config);
  return configured(config, [&] { return pncclBroadcast(in, out, count, type, root, comm, stream); });
}

TANDEM_NCCL_EXPORT(ReduceConfig);
ncclResult_t pncclReduceConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  TANDEM_NCCL_FORWARD(ReduceConfig, comm, ncclInvalidUsage, in, out, count, type, op, root, *real, stream, config);
  return configured(config, [&] { return pncclReduce(in, out, count, type, op, root, comm, stream); });
}

TANDEM_NCCL_EXPORT(AllGatherConfig);
ncclResult_t pncclAllGatherConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                                  cudaStream_t stream, const ncclCollConfig_t* config) {
  TANDEM_NCCL_FORWARD(AllGatherConfig, comm, ncclInvalidUsage, in, out, count, type, *real, stream, config);
  return configured(config, [&] { return pncclAllGather(in, out, count, type, comm, stream); });
}

TANDEM_NCCL_EXPORT(ReduceScatterConfig);
ncclResult_t pncclReduceScatterConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                                      ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  TANDEM_NCCL_FORWARD(ReduceScatterConfig, comm, ncclInvalidUsage, in, out, count, type, op, *real, stream, config);
  return configured(config, [&] { return pncclReduceScatter(in, out, count, type, op, comm, stream); });
}

TANDEM_NCCL_EXPORT(AlltoAllConfig);
ncclResult_t pncclAlltoAllConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t* config) {
  TANDEM_NCCL_FORWARD(AlltoAllConfig, comm, ncclInvalidUsage, in, out, count, type, *real, stream, config);
  return configured(config, [&] { return pncclAlltoAll(in, out, count, type, comm, stream); });
}

TANDEM_NCCL_EXPORT(GatherConfig);
ncclResult_t pncclGatherConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  TANDEM_NCCL_FORWARD(GatherConfig, comm, ncclInvalidUsage, in, out, count, type, root, *real, stream, config);
  return configured(config, [&] { return pncclGather(in, out, count, type, root, comm, stream); });
}

TANDEM_NCCL_EXPORT(ScatterConfig);
ncclResult_t pncclScatterConfig(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                                ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  TANDEM_NCCL_FORWARD(ScatterConfig, comm, ncclInvalidUsage, in, out, count, type, root, *real, stream, config);
  return configured(config, [&] { return pncclScatter(in, out, count, type, root, comm, stream); });
}
