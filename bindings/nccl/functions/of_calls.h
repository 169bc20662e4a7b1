#pragma once
/// The common part of functions that make calls.

#include <fmt/format.h>

#include <array>
#include <memory>

#include "bindings/nccl/group.h"
#include "bindings/nccl/handles.h"

namespace tandem::nccl {

inline DType type_of(ncclDataType_t type) {
  constexpr std::array<DType, ncclNumTypes> kTypes{DType::kI8,  DType::kU8,   DType::kI32,  DType::kU32,
                                                   DType::kI64, DType::kU64,  DType::kF16,  DType::kF32,
                                                   DType::kF64, DType::kBF16, DType::kE4M3, DType::kE5M2};
  if (type < 0 || type >= ncclNumTypes)
    throw InvalidArgument(
        fmt::format("datatype: {} given, allowed are 0 to {}", static_cast<int>(type), ncclNumTypes - 1));
  return kTypes[static_cast<std::size_t>(type)];
}

inline Size checked_count(std::size_t count) {
  constexpr std::size_t kMost = std::size_t{1} << 46;
  if (count > kMost)
    throw InvalidArgument(
        fmt::format("count: {} given, allowed is at most {}, more than any memory holds", count, kMost));
  return static_cast<Size>(count);
}

/// Runs a call that may be part of a group, and keeps its error for the communicator, too.
template <class Work>
ncclResult_t call_of(ncclComm_t comm, const Work& work) {
  const std::shared_ptr<Communicator> found = find_communicator(comm);
  try {
    const std::shared_ptr<Communicator> communicator = communicator_of(comm);
    communicator->check_usable();
    return work(communicator);
  } catch (...) {
    const Problem problem = problem_now();
    return failed_in_group(found != nullptr ? found->keep(problem, false) : reported(problem));
  }
}

}  // namespace tandem::nccl
