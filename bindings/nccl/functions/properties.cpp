// Questions about a communicator: its state, properties and teams.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "bindings/nccl/fallback.h"
#include "bindings/nccl/functions/exports.h"
#include "bindings/nccl/handles.h"

namespace {

using tandem::InvalidArgument;
using tandem::nccl::communicator_of;
using tandem::nccl::Failed;
using tandem::nccl::given;
using tandem::nccl::guarded;

constexpr ncclTeam kNoTeam{0, -1, 0};

/// Throws InvalidArgument unless a caller's structure is of this kind and has its first fields.
template <class Structure>
void check_header(const Structure* structure, std::size_t least, const char* name) {
  given(structure, name);
  if (structure->size < least)
    throw InvalidArgument(fmt::format("{}.size: {} given, allowed is at least {}", name, structure->size, least));
  if (structure->magic != kConfigMagic)
    throw InvalidArgument(fmt::format("{}.magic: {:#x} given, allowed is {:#x}", name, structure->magic, kConfigMagic));
}

/// Returns the team that `make` gives for the number of ranks and the own rank.
template <class Make>
ncclTeam team_of(ncclComm_t comm, const Make& make) {
  ncclTeam team = kNoTeam;
  guarded([&] {
    const auto communicator = communicator_of(comm);
    communicator->device();  // once it is ready
    team = make(communicator->ranks(), communicator->rank());
    return ncclSuccess;
  });
  return team;
}

/// Returns the rank in the communicator of a member of the team; -1 if there is none.
int rank_of(ncclComm_t comm, const ncclTeam& team, int member) {
  int rank = -1;
  guarded([&] {
    if (member < 0 || member >= team.nRanks)
      throw InvalidArgument(fmt::format("rank: {} given, allowed are 0 to {}", member, team.nRanks - 1));
    rank = communicator_of(comm)->rank() + (member - team.rank) * team.stride;
    return ncclSuccess;
  });
  return rank;
}

}  // namespace

TANDEM_NCCL_EXPORT(CommGetAsyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  TANDEM_NCCL_FORWARD(CommGetAsyncError, comm, ncclInvalidUsage, *real, error);
  return guarded([&] {
    given(error, "asyncError") = ncclSuccess;
    *error = communicator_of(comm)->state().result;
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommCount);
ncclResult_t pncclCommCount(ncclComm_t comm, int* count) {
  TANDEM_NCCL_FORWARD(CommCount, comm, ncclInvalidUsage, *real, count);
  return guarded([&] {
    const auto whole = communicator_of(comm);
    whole->device();  // once it is known
    given(count, "count") = whole->ranks();
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommUserRank);
ncclResult_t pncclCommUserRank(ncclComm_t comm, int* rank) {
  TANDEM_NCCL_FORWARD(CommUserRank, comm, ncclInvalidUsage, *real, rank);
  return guarded([&] {
    const auto whole = communicator_of(comm);
    whole->device();
    given(rank, "rank") = whole->rank();
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommCuDevice);
ncclResult_t pncclCommCuDevice(ncclComm_t comm, int* device) {
  TANDEM_NCCL_FORWARD(CommCuDevice, comm, ncclInvalidUsage, *real, device);
  return guarded([&] {
    given(device, "device") = communicator_of(comm)->device();
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommQueryProperties);
ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* properties) {
  TANDEM_NCCL_FORWARD(CommQueryProperties, comm, ncclInvalidUsage, *real, properties);
  return guarded([&] {
    constexpr std::size_t least = offsetof(ncclCommProperties_t, rank);
    check_header(properties, least, "props");
    const auto communicator = communicator_of(comm);
    ncclCommProperties_t all{};
    all.cudaDev = all.nvmlDev = communicator->device();
    all.rank = communicator->rank();
    all.nRanks = communicator->ranks();
    all.nLsaTeams = 1;
    all.commHash = communicator->hash();
    const std::size_t known = std::min(properties->size, sizeof(all));
    std::memcpy(reinterpret_cast<char*>(properties) + least, reinterpret_cast<const char*>(&all) + least,
                known - least);
    return ncclSuccess;
  });
}

// All ranks of a communicator reach each other's memory.

TANDEM_NCCL_EXPORT(TeamWorld);
ncclTeam pncclTeamWorld(ncclComm_t comm) {
  TANDEM_NCCL_FORWARD(TeamWorld, comm, kNoTeam, *real);
  return team_of(comm, [](int ranks, int rank) { return ncclTeam{ranks, rank, 1}; });
}

TANDEM_NCCL_EXPORT(TeamLsa);
ncclTeam pncclTeamLsa(ncclComm_t comm) {
  TANDEM_NCCL_FORWARD(TeamLsa, comm, kNoTeam, *real);
  return team_of(comm, [](int ranks, int rank) { return ncclTeam{ranks, rank, 1}; });
}

TANDEM_NCCL_EXPORT(TeamRail);
ncclTeam pncclTeamRail(ncclComm_t comm) {
  TANDEM_NCCL_FORWARD(TeamRail, comm, kNoTeam, *real);
  return team_of(comm, [](int ranks, int) { return ncclTeam{1, 0, ranks}; });
}

TANDEM_NCCL_EXPORT(TeamRankToWorld);
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam team, int rank) {
  TANDEM_NCCL_FORWARD(TeamRankToWorld, comm, -1, *real, team, rank);
  return rank_of(comm, team, rank);
}

TANDEM_NCCL_EXPORT(TeamRankToLsa);
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam team, int rank) {
  TANDEM_NCCL_FORWARD(TeamRankToLsa, comm, -1, *real, team, rank);
  return rank_of(comm, team, rank);
}

TANDEM_NCCL_EXPORT(SetEncryption);
ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t* config) {
  return guarded([&] {
    check_header(config, sizeof(ncclEncryptionConfig_t), "config");
    if (config->mode == NCCL_ENCRYPTION_MODE_NONE) return ncclSuccess;
    if (config->mode == NCCL_ENCRYPTION_MODE_PSK)
      throw Failed(ncclInvalidUsage,
                   "config.mode: a key of the program given, allowed is none: the ranks' connections are "
                   "authenticated by the unique id, and TANDEM_SEAL=all encrypts data between hosts");
    throw InvalidArgument(fmt::format("config.mode: {} given, allowed are 0 and 1", config->mode));
  });
}
