#pragma once
/// Host memory of all members of a team on one host, at a constant stride, handed over by descriptors.

#include <cstddef>

#include "bootstrap/local/fd_exchange.h"

namespace tandem::bootstrap {

class SharedMemory {
 public:
  /// `bytes` is the same on all members and is rounded up to pages. The memory starts as zeros and takes room only once
  /// it is touched. Collective over `team`. Throws RuntimeFailure, and everything that FdExchange::exchange throws.
  SharedMemory(FdExchange& exchange, const Team& team, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Returns the part of the team's member of that number.
  std::byte* on(int member) const { return base_ + static_cast<std::size_t>(member) * stride_; }

 private:
  std::size_t all() const { return stride_ * static_cast<std::size_t>(members_); }

  int members_;
  std::size_t stride_;
  std::byte* base_ = nullptr;
};

}  // namespace tandem::bootstrap
