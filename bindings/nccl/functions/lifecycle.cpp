// Communicators: how they begin, part and end.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "bindings/nccl/address.h"
#include "bindings/nccl/fallback.h"
#include "bindings/nccl/functions/exports.h"
#include "bindings/nccl/group.h"
#include "bindings/nccl/handles.h"
#include "world/device/devices.h"

namespace {

using tandem::InvalidArgument;
using tandem::UniqueId;
using tandem::nccl::add_change;
using tandem::nccl::add_handle;
using tandem::nccl::close_later;
using tandem::nccl::Communicator;
using tandem::nccl::communicator_of;
using tandem::nccl::Failed;
using tandem::nccl::failed_in_group;
using tandem::nccl::given;
using tandem::nccl::guarded;
using tandem::nccl::remove_handle;
using tandem::nccl::Settings;
using tandem::nccl::settings_of;
using tandem::nccl::Use;

using Shared = std::shared_ptr<Communicator>;

UniqueId parsed(const ncclUniqueId& id) {
  return UniqueId::from_bytes({reinterpret_cast<const std::byte*>(id.internal), UniqueId::kBytes});
}

ncclUniqueId written(const UniqueId& id) {
  ncclUniqueId bytes;
  std::memcpy(bytes.internal, id.bytes().data(), UniqueId::kBytes);
  return bytes;
}

void check_place(int rank, int ranks) {
  if (ranks < 1) throw InvalidArgument(fmt::format("nranks: {} given, allowed is at least 1", ranks));
  if (rank < 0 || rank >= ranks)
    throw InvalidArgument(fmt::format("rank: {} given, allowed are 0 to {}", rank, ranks - 1));
}

/// Makes a communicator by `change`, now or at the group's end, and sets `*comm` to its handle. Where it fails at once
/// there is none.
ncclResult_t make(ncclComm_t* comm, const Shared& on, const Shared& made, std::function<void()> change) {
  *comm = add_handle(made);
  const ncclResult_t result = add_change(on, made, std::move(change));
  if (result == ncclSuccess || result == ncclInProgress) return result;
  close_later(remove_handle(*comm));
  *comm = nullptr;
  return result;
}

ncclResult_t join(ncclComm_t* comm, int ranks, const UniqueId& id, int rank, const Settings& settings,
                  std::optional<int> device) {
  const auto made = std::make_shared<Communicator>(settings, rank, ranks, device);
  return make(comm, made, made, [made, id] { made->join(id, tandem::nccl::lineage_of(id)); });
}

/// Runs a call that may be part of a group.
template <class Work>
ncclResult_t in_group(const Work& work) {
  const ncclResult_t result = guarded([&] {
    tandem::nccl::introduce();
    return work();
  });
  return result == ncclSuccess || result == ncclInProgress ? result : failed_in_group(result);
}

ncclResult_t init(ncclComm_t* comm, int ranks, const ncclUniqueId* ids, int count, int rank,
                  const ncclConfig_t* config) {
  return in_group([&] {
    given(comm, "comm") = nullptr;
    check_place(rank, ranks);
    if (count < 1 || count > ranks)
      throw InvalidArgument(fmt::format("nId: {} given, allowed are 1 to {}, the ranks", count, ranks));
    // One rendezvous serves all ranks; further ids would spread the work of many hosts.
    const UniqueId id = parsed(given(ids, "commIds"));
    return join(comm, ranks, id, rank, settings_of(config), std::nullopt);
  });
}

/// Returns the ranks to leave out, sorted. Throws InvalidArgument for one that is not there, or this one.
std::vector<int> excluded_ranks(const int* list, int count, const Communicator& whole) {
  if (count < 1 || count >= whole.ranks())
    throw InvalidArgument(fmt::format("excludeRanksCount: {} given, allowed are 1 to {}", count, whole.ranks() - 1));
  given(list, "excludeRanksList");
  std::set<int> ranks(list, list + count);
  if (ranks.size() != static_cast<std::size_t>(count))
    throw InvalidArgument("excludeRanksList: a rank given twice, allowed is once");
  if (*ranks.begin() < 0 || *ranks.rbegin() >= whole.ranks() || ranks.count(whole.rank()) != 0)
    throw InvalidArgument(
        fmt::format("excludeRanksList: ranks {} to {} given, allowed are 0 to {} but not {}, the "
                    "caller",
                    *ranks.begin(), *ranks.rbegin(), whole.ranks() - 1, whole.rank()));
  return {ranks.begin(), ranks.end()};
}

/// Returns the devices of the ranks of one thread. Checks them first: a rank that failed alone would leave the others
/// waiting.
std::vector<int> checked_devices(int ndev, const int* list) {
  const int count = tandem::world::devices_of(std::nullopt).count();
  if (ndev < 1 || ndev > count)
    throw InvalidArgument(fmt::format("ndev: {} given, allowed are 1 to {}, the devices", ndev, count));
  std::vector<int> devices(static_cast<std::size_t>(ndev));
  std::iota(devices.begin(), devices.end(), 0);
  if (list != nullptr) devices.assign(list, list + ndev);
  for (const int device : devices)
    if (device < 0 || device >= count)
      throw InvalidArgument(fmt::format("devlist: {} given, allowed are 0 to {}", device, count - 1));
  if (std::set<int>(devices.begin(), devices.end()).size() != devices.size())
    throw Failed(ncclInvalidUsage, "devlist: a device given twice, allowed is once");
  return devices;
}

/// Ends a communicator. One that the real NCCL carries ends by its function of that name.
template <class Function, class End>
ncclResult_t ended(ncclComm_t comm, const char* name, const void* caller, const End& end) {
  return guarded([&] {
    if (comm == nullptr) return ncclSuccess;
    const auto end_real = [&](ncclComm_t real) {
      return tandem::nccl::forwarded<Function>(name, ncclInvalidUsage, real);
    };
    const auto foreign = tandem::nccl::theirs(comm, caller);
    if (foreign && tandem::nccl::find_communicator(comm) == nullptr) return end_real(*foreign);
    const Shared whole = remove_handle(comm);
    const auto real = whole->take_real();
    const ncclResult_t result = real ? end_real(*real) : ncclSuccess;
    if (!real) end(*whole);
    close_later(whole);
    return result;
  });
}

/// Refuses flags that no version defines.
void check_flags(int flags, int most, const char* name) {
  if (flags < 0 || flags > most)
    throw InvalidArgument(fmt::format("{}: {} given, allowed are 0 to {}", name, flags, most));
}

}  // namespace

TANDEM_NCCL_EXPORT(GetUniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  TANDEM_NCCL_FORWARD_OWN(GetUniqueId, ncclInvalidUsage, id);
  return guarded([&] {
    tandem::nccl::introduce();
    given(id, "uniqueId") = written(UniqueId::create(tandem::nccl::own_address()));
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommInitRank);
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank) {
  return init(comm, nranks, &id, 1, rank, nullptr);
}

TANDEM_NCCL_EXPORT(CommInitRankConfig);
ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return init(comm, nranks, &id, 1, rank, config);
}

TANDEM_NCCL_EXPORT(CommInitRankScalable);
ncclResult_t pncclCommInitRankScalable(ncclComm_t* comm, int nranks, int rank, int nid, ncclUniqueId* ids,
                                       ncclConfig_t* config) {
  return init(comm, nranks, ids, nid, rank, config);
}

TANDEM_NCCL_EXPORT(CommInitAll);
ncclResult_t pncclCommInitAll(ncclComm_t* comms, int ndev, const int* devices) {
  return in_group([&] {
    given(comms, "comm");
    const std::vector<int> all = checked_devices(ndev, devices);
    std::fill_n(comms, ndev, nullptr);
    const UniqueId id = UniqueId::create();
    tandem::nccl::start_group();
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < ndev && result == ncclSuccess; ++i)
      result = join(comms + i, ndev, id, i, {}, all[static_cast<std::size_t>(i)]);
    result = tandem::nccl::end_group();
    if (result == ncclSuccess) return result;
    for (ncclComm_t* comm = comms; comm != comms + ndev; ++comm)
      if (*comm != nullptr) close_later(remove_handle(std::exchange(*comm, nullptr)));
    return result;
  });
}

TANDEM_NCCL_EXPORT(CommSplit);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config) {
  TANDEM_NCCL_FORWARD(CommSplit, comm, ncclInvalidUsage, *real, color, key, part, config);
  return in_group([&] {
    given(part, "newcomm") = nullptr;
    const Shared whole = communicator_of(comm);
    whole->check_usable();
    if (color < 0 && color != kNoColor)
      throw InvalidArgument(
          fmt::format("color: {} given, allowed are 0 and above, or {} for no communicator", color, kNoColor));
    const auto made =
        std::make_shared<Communicator>(settings_of(config, whole->settings()), 0, whole->ranks(), std::nullopt);
    const auto change = [whole, made, color, key] { whole->split(color, key, *made); };
    if (color == kNoColor) return add_change(whole, made, change);
    return make(part, whole, made, change);
  });
}

TANDEM_NCCL_EXPORT(CommShrink);
ncclResult_t pncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* rest, ncclConfig_t* config,
                             int flags) {
  TANDEM_NCCL_FORWARD(CommShrink, comm, ncclInvalidUsage, *real, excluded, count, rest, config, flags);
  return in_group([&] {
    given(rest, "newcomm") = nullptr;
    const Shared whole = communicator_of(comm);
    check_flags(flags, kShrinkAbort, "shrinkFlags");
    const std::vector<int> without = excluded_ranks(excluded, count, *whole);
    if (flags == kShrinkAbort) whole->stop("shrink");
    const auto before = std::lower_bound(without.begin(), without.end(), whole->rank()) - without.begin();
    const auto made =
        std::make_shared<Communicator>(settings_of(config, whole->settings()), whole->rank() - static_cast<int>(before),
                                       whole->ranks() - count, std::nullopt);
    return make(rest, whole, made, [whole, made, without] { whole->shrink(without, *made); });
  });
}

TANDEM_NCCL_EXPORT(CommGetUniqueId);
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  TANDEM_NCCL_FORWARD(CommGetUniqueId, comm, ncclInvalidUsage, *real, id);
  return guarded([&] {
    given(id, "uniqueId");
    *id = written(communicator_of(comm)->id_to_grow());
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommGrow);
ncclResult_t pncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank, ncclComm_t* grown,
                           ncclConfig_t* config) {
  TANDEM_NCCL_FORWARD(CommGrow, comm, ncclInvalidUsage, *real, nranks, id, rank, grown, config);
  return in_group([&] {
    given(grown, "newcomm") = nullptr;
    if (comm == nullptr) {  // a rank that joins
      check_place(rank, nranks);
      return join(grown, nranks, parsed(given(id, "uniqueId")), rank, settings_of(config), std::nullopt);
    }
    const Shared whole = communicator_of(comm);
    whole->check_usable();
    if (nranks <= whole->ranks())
      throw InvalidArgument(fmt::format("nRanks: {} given, allowed is more than {}", nranks, whole->ranks()));
    if (rank != -1) throw InvalidArgument(fmt::format("rank: {} given, allowed is -1 for a member", rank));
    const auto made =
        std::make_shared<Communicator>(settings_of(config, whole->settings()), whole->rank(), nranks, std::nullopt);
    return make(grown, whole, made, [whole, made] { whole->grow(*made); });
  });
}

TANDEM_NCCL_EXPORT(CommFinalize);
ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  TANDEM_NCCL_FORWARD(CommFinalize, comm, ncclInvalidUsage, *real);
  return guarded([&] {
    if (comm == nullptr) return ncclSuccess;
    const Shared whole = communicator_of(comm);
    const Use use(whole);
    whole->finalize();
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommDestroy);
ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  return ended<decltype(pncclCommDestroy)>(comm, "pncclCommDestroy", __builtin_return_address(0), [](Communicator&) {});
}

TANDEM_NCCL_EXPORT(CommAbort);
ncclResult_t pncclCommAbort(ncclComm_t comm) {
  return ended<decltype(pncclCommAbort)>(comm, "pncclCommAbort", __builtin_return_address(0), [](Communicator& whole) {
    whole.abort("ncclCommAbort");
    whole.wait_for_calls();  // afterwards the caller may free its buffers
  });
}

TANDEM_NCCL_EXPORT(CommRevoke);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int flags) {
  TANDEM_NCCL_FORWARD(CommRevoke, comm, ncclInvalidUsage, *real, flags);
  return guarded([&] {
    const Shared whole = communicator_of(comm);
    check_flags(flags, 0, "revokeFlags");
    whole->check_usable();
    whole->stop("revoked");
    return ncclSuccess;
  });
}
