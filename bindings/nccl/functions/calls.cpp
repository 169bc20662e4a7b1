// Collectives, messages, groups and the operations that programs make.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bindings/nccl/fallback.h"
#include "bindings/nccl/functions/exports.h"
#include "bindings/nccl/functions/of_calls.h"
#include "bindings/nccl/group.h"
#include "bindings/nccl/handles.h"

namespace {

using tandem::Collective;
using tandem::InvalidArgument;
using tandem::ReduceOp;
using tandem::Size;
using tandem::nccl::call_of;
using tandem::nccl::checked_count;
using tandem::nccl::Communicator;
using tandem::nccl::communicator_of;
using tandem::nccl::given;
using tandem::nccl::guarded;
using tandem::nccl::type_of;

using Shared = std::shared_ptr<Communicator>;

/// Sets the operation of a call, and the factor of one that the program made.
void set_operation(tandem::c::Call& call, ncclRedOp_t op, Communicator& communicator) {
  constexpr std::array<ReduceOp, ncclNumOps> kOps{ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin,
                                                  ReduceOp::kAvg};
  if (op >= 0 && op < ncclNumOps) {
    call.what.op = kOps[static_cast<std::size_t>(op)];
    return;
  }
  const auto scalar = communicator.scalar(op);
  if (!scalar)
    throw InvalidArgument(fmt::format("op: {} given, allowed are 0 to {} and operations made for this communicator",
                                      static_cast<int>(op), ncclNumOps - 1));
  if (scalar->type != call.what.type)
    throw InvalidArgument(fmt::format("datatype: {} given, allowed is {}, for which the operation was made",
                                      name(call.what.type), name(scalar->type)));
  call.what.op = ReduceOp::kPremulSum;
  call.scale = scalar->scale;
}

/// Gives a rank without input or output the other buffer, which the call does not touch there.
void set_unused(tandem::c::Call& call, int rank) {
  const bool is_root = rank == call.what.root;
  const Collective collective = call.what.collective;
  if (is_root) return;
  if (collective == Collective::kReduce || collective == Collective::kGather) call.out = const_cast<void*>(call.in);
  if (collective == Collective::kBroadcast || collective == Collective::kScatter) call.in = call.out;
}

void check_buffers(const tandem::c::Call& call) {
  if (call.in == nullptr) throw InvalidArgument("sendbuff: NULL given, allowed is an address");
  if (call.out == nullptr) throw InvalidArgument("recvbuff: NULL given, allowed is an address");
}

ncclResult_t collective(Collective what, const void* in, void* out, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return call_of(comm, [&](const Shared& communicator) {
    tandem::c::Call call{{what, type_of(type), ReduceOp::kSum, root}, in, out, checked_count(count), stream};
    if (root < 0 || root >= communicator->ranks())
      throw InvalidArgument(fmt::format("root: {} given, allowed are 0 to {}", root, communicator->ranks() - 1));
    set_operation(call, op, *communicator);
    if (count == 0) return ncclSuccess;
    set_unused(call, communicator->rank());
    check_buffers(call);
    return tandem::nccl::add_collective(communicator, call);
  });
}

ncclResult_t message(bool is_send, void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t stream) {
  return call_of(comm, [&](const Shared& communicator) {
    const Size bytes = checked_count(count) * size_of(type_of(type));
    if (peer < 0 || peer >= communicator->ranks())
      throw InvalidArgument(fmt::format("peer: {} given, allowed are 0 to {}", peer, communicator->ranks() - 1));
    if (bytes > 0 && data == nullptr)
      throw InvalidArgument(fmt::format("{}: NULL given, allowed is an address", is_send ? "sendbuff" : "recvbuff"));
    return tandem::nccl::add_message(communicator, {is_send, peer, data, bytes, stream});
  });
}

}  // namespace

TANDEM_NCCL_EXPORT(AllReduce);
ncclResult_t pncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(AllReduce, comm, ncclInvalidUsage, in, out, count, type, op, *real, stream);
  return collective(Collective::kAllReduce, in, out, count, type, op, 0, comm, stream);
}

TANDEM_NCCL_EXPORT(Reduce);
ncclResult_t pncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(Reduce, comm, ncclInvalidUsage, in, out, count, type, op, root, *real, stream);
  return collective(Collective::kReduce, in, out, count, type, op, root, comm, stream);
}

TANDEM_NCCL_EXPORT(ReduceScatter);
ncclResult_t pncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(ReduceScatter, comm, ncclInvalidUsage, in, out, count, type, op, *real, stream);
  return collective(Collective::kReduceScatter, in, out, count, type, op, 0, comm, stream);
}

TANDEM_NCCL_EXPORT(AllGather);
ncclResult_t pncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                            cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(AllGather, comm, ncclInvalidUsage, in, out, count, type, *real, stream);
  return collective(Collective::kAllGather, in, out, count, type, ncclSum, 0, comm, stream);
}

TANDEM_NCCL_EXPORT(AlltoAll);
ncclResult_t pncclAlltoAll(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(AlltoAll, comm, ncclInvalidUsage, in, out, count, type, *real, stream);
  return collective(Collective::kAllToAll, in, out, count, type, ncclSum, 0, comm, stream);
}

TANDEM_NCCL_EXPORT(Broadcast);
ncclResult_t pncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                            ncclComm_t comm, cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(Broadcast, comm, ncclInvalidUsage, in, out, count, type, root, *real, stream);
  return collective(Collective::kBroadcast, in, out, count, type, ncclSum, root, comm, stream);
}

TANDEM_NCCL_EXPORT(Bcast);
ncclResult_t pncclBcast(void* data, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(Bcast, comm, ncclInvalidUsage, data, count, type, root, *real, stream);
  return collective(Collective::kBroadcast, data, data, count, type, ncclSum, root, comm, stream);
}

TANDEM_NCCL_EXPORT(Gather);
ncclResult_t pncclGather(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(Gather, comm, ncclInvalidUsage, in, out, count, type, root, *real, stream);
  return collective(Collective::kGather, in, out, count, type, ncclSum, root, comm, stream);
}

TANDEM_NCCL_EXPORT(Scatter);
ncclResult_t pncclScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                          cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(Scatter, comm, ncclInvalidUsage, in, out, count, type, root, *real, stream);
  return collective(Collective::kScatter, in, out, count, type, ncclSum, root, comm, stream);
}

TANDEM_NCCL_EXPORT(Send);
ncclResult_t pncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(Send, comm, ncclInvalidUsage, data, count, type, peer, *real, stream);
  return message(true, const_cast<void*>(data), count, type, peer, comm, stream);
}

TANDEM_NCCL_EXPORT(Recv);
ncclResult_t pncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(Recv, comm, ncclInvalidUsage, data, count, type, peer, *real, stream);
  return message(false, data, count, type, peer, comm, stream);
}

TANDEM_NCCL_EXPORT(GroupStart);
ncclResult_t pncclGroupStart() {
  tandem::nccl::start_group();
  return ncclSuccess;
}

TANDEM_NCCL_EXPORT(GroupEnd);
ncclResult_t pncclGroupEnd() {
  return guarded([] { return tandem::nccl::end_group(); });
}

TANDEM_NCCL_EXPORT(GroupSimulateEnd);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* info) {
  return guarded([&] {
    ncclSimInfo_t& to = given(info, "simInfo");
    if (to.size < sizeof(ncclSimInfo_t) || to.magic != kSimInfoMagic)
      throw InvalidArgument(fmt::format("simInfo: size {} and magic {:#x} given, allowed are {} or more and {:#x}",
                                        to.size, to.magic, sizeof(ncclSimInfo_t), kSimInfoMagic));
    to.estimatedTime = -1;
    to.estimatedTime = static_cast<float>(tandem::nccl::simulate_group());
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(RedOpCreatePreMulSum);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t where,
                                       ncclComm_t comm) {
  TANDEM_NCCL_FORWARD(RedOpCreatePreMulSum, comm, ncclInvalidUsage, op, scalar, type, where, *real);
  return call_of(comm, [&](const Shared& communicator) {
    given(op, "op") = ncclMaxRedOp;  // which every call refuses
    tandem::nccl::Scalar made{type_of(type)};
    given(static_cast<char*>(scalar), "scalar");
    if (where != ncclScalarDevice && where != ncclScalarHostImmediate)
      throw InvalidArgument(fmt::format("residence: {} given, allowed are 0 and 1", static_cast<int>(where)));
    if (where == ncclScalarDevice)
      made.scale.at = scalar;
    else
      std::memcpy(made.scale.value.data(), scalar, static_cast<std::size_t>(size_of(made.type)));
    *op = static_cast<ncclRedOp_t>(communicator->add_scalar(made));
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(RedOpDestroy);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  TANDEM_NCCL_FORWARD(RedOpDestroy, comm, ncclInvalidUsage, op, *real);
  return guarded([&] {
    if (!communicator_of(comm)->remove_scalar(op))
      throw InvalidArgument(
          fmt::format("op: {} given, allowed is an operation made for this communicator", static_cast<int>(op)));
    return ncclSuccess;
  });
}
