#pragma once
/// The order of a world's calls, which PEs compare with each other's before they enqueue or make anything.

#include <array>
#include <cstdint>
#include <optional>

#include "plans.h"
#include "runtime/mismatch_detector.h"
#include "tandem/symm.h"

namespace tandem::c {

/// Where a buffer lies.
struct Place {
  /// The handle by which peers access it; none if they do not.
  std::optional<Symm<std::byte>> memory;
  /// The same on two PEs where it is the same place of the same buffer; 0 where peers do not reach it.
  std::uint64_t number = 0;

  /// Allocations, and registrations, that have a number at a time.
  static constexpr int kMostBuffers = (1 << 19) - 1;
  static std::uint64_t number_of(bool is_registered, int buffer, Size offset);
};

class CallOrder {
 public:
  CallOrder(World& world, Plans& plans);
  ~CallOrder();
  CallOrder(const CallOrder&) = delete;
  CallOrder& operator=(const CallOrder&) = delete;

  /// Throws InvalidArgument if another PE has made another call, or if the buffers of the two calls do not match. The
  /// world is then over on all PEs.
  void note(const Operation& what, Size count, const Place& in, const Place& out);
  /// The last one could not be enqueued here.
  void take_back();

 private:
  std::string difference(const RecordedCall& own, const RecordedCall& its, int pe) const;

  int me_;
  Plans& plans_;
  MismatchDetector* log_;  // null: nobody compares
  std::size_t order_ = 0;
};

}  // namespace tandem::c
