// One-sided calls, which CPUs have.
#include <fmt/format.h>

#include <vector>

#include "bindings/nccl/fallback.h"
#include "bindings/nccl/functions/exports.h"
#include "bindings/nccl/functions/of_calls.h"
#include "world/device/devices.h"

namespace {

using tandem::InvalidArgument;
using tandem::Size;
using tandem::nccl::Communicator;
using Shared = std::shared_ptr<Communicator>;

void check_kind() {
  if (tandem::world::devices_of(std::nullopt).kind() != tandem::DeviceKind::kHost)
    throw tandem::nccl::Failed(ncclInvalidUsage, "one-sided calls: Tandem has them on CPUs alone");
}

void check_peer(int peer, const Communicator& communicator) {
  if (peer < 0 || peer >= communicator.ranks())
    throw InvalidArgument(fmt::format("peer: {} given, allowed are 0 to {}", peer, communicator.ranks() - 1));
}

/// Returns the number of a signal among those of its context and all others.
std::size_t number_of(int signal, int context) {
  constexpr int signals = Communicator::kSignalsOfContext, contexts = Communicator::kContexts;
  if (signal < 0 || signal >= signals)
    throw InvalidArgument(fmt::format("sigIdx: {} given, allowed are 0 to {}", signal, signals - 1));
  if (context < 0 || context >= contexts)
    throw InvalidArgument(fmt::format("ctx: {} given, allowed are 0 to {}", context, contexts - 1));
  return static_cast<std::size_t>(context) * signals + static_cast<std::size_t>(signal);
}

void check_flags(unsigned int flags) {
  if (flags != 0) throw InvalidArgument(fmt::format("flags: {} given, allowed is 0", flags));
}

}  // namespace

TANDEM_NCCL_EXPORT(PutSignal);
ncclResult_t pncclPutSignal(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
                            std::size_t offset, int signal, int context, unsigned int flags, ncclComm_t comm,
                            cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(PutSignal, comm, ncclInvalidUsage, data, count, type, peer, window, offset, signal, context,
                      flags, *real, stream);
  return tandem::nccl::call_of(comm, [&](const Shared& communicator) {
    check_kind();
    check_peer(peer, *communicator);
    check_flags(flags);
    const std::size_t number = number_of(signal, context);
    const Size bytes = tandem::nccl::checked_count(count) * size_of(tandem::nccl::type_of(type));
    if (bytes > 0 && data == nullptr) throw InvalidArgument("localbuff: NULL given, allowed is an address");
    communicator->on_rank(window, offset, peer);
    return tandem::nccl::add_one_sided(communicator, [=, whole = communicator.get()] {
      whole->put_signal(window, offset, data, bytes, peer, number);
    });
  });
}

TANDEM_NCCL_EXPORT(Signal);
ncclResult_t pncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(Signal, comm, ncclInvalidUsage, peer, signal, context, flags, *real, stream);
  return tandem::nccl::call_of(comm, [&](const Shared& communicator) {
    check_kind();
    check_peer(peer, *communicator);
    check_flags(flags);
    const std::size_t number = number_of(signal, context);
    return tandem::nccl::add_one_sided(
        communicator, [=, whole = communicator.get()] { whole->put_signal(nullptr, 0, nullptr, 0, peer, number); });
  });
}

TANDEM_NCCL_EXPORT(WaitSignal);
ncclResult_t pncclWaitSignal(int count, ncclWaitSignalDesc_t* descriptions, ncclComm_t comm, cudaStream_t stream) {
  TANDEM_NCCL_FORWARD(WaitSignal, comm, ncclInvalidUsage, count, descriptions, *real, stream);
  return tandem::nccl::call_of(comm, [&](const Shared& communicator) {
    check_kind();
    if (count < 0) throw InvalidArgument(fmt::format("nDesc: {} given, allowed is at least 0", count));
    if (count > 0) tandem::nccl::given(descriptions, "signalDescs");
    const std::vector<ncclWaitSignalDesc_t> all(descriptions, descriptions + count);
    for (const ncclWaitSignalDesc_t& one : all) {
      check_peer(one.peer, *communicator);
      number_of(one.sigIdx, one.ctx);
      if (one.opCnt < 0) throw InvalidArgument(fmt::format("opCnt: {} given, allowed is at least 0", one.opCnt));
    }
    return tandem::nccl::add_one_sided(communicator, [all, whole = communicator.get()] {
      for (const ncclWaitSignalDesc_t& one : all)
        whole->wait_signal(one.peer, number_of(one.sigIdx, one.ctx), static_cast<std::uint64_t>(one.opCnt));
    });
  });
}
