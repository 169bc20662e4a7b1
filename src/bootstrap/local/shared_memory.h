#pragma once
/// Host memory of all members of a team on one host, at a constant stride, handed over by descriptors as GPUs' memory
/// is.

#include <cstddef>

#include "bootstrap/local/fd_exchange.h"

namespace tandem::bootstrap {

class SharedMemory {
 public:
  /// `bytes` (the same on all; rounded up to pages) for each member: zeros, which take room only once they are touched.
  /// Collective over `team`. Throws RuntimeFailure, and what FdExchange::exchange throws.
  SharedMemory(FdExchange& exchange, const Team& team, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// The part of that number in the team.
  std::byte* on(int member) const { return base_ + static_cast<std::size_t>(member) * stride_; }

 private:
  std::size_t all() const { return stride_ * static_cast<std::size_t>(members_); }

  int members_;
  std::size_t stride_;
  std::byte* base_ = nullptr;
};

}  // namespace tandem::bootstrap
