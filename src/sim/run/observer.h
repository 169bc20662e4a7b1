#pragma once
/// The interface through which every access and every synchronisation of a simulated run can be observed. Timelines and
/// checkers are observers.

#include <cstdint>
#include <string>

#include "sim/engine/engine.h"
#include "tandem/impl/site.h"
#include "tandem/range.h"
#include "tandem/signal.h"

namespace tandem::sim {

enum class OperationKind : std::uint8_t {
  kLoad,
  kStore,
  kCopy,
  kPut,
  kGet,
  kSignal,
  kWait,
  kTest,
  kFence,
  kQuiet,
  kAtomic,
  kSync,
  kCompute,
  kCopyEngine,
  kTransfer,  ///< a chunk on a link or a NIC
  kMemory,    ///< a wait for loads from local memory and stores to it in flight
};

/// The place of an operation: a row of the timeline, numbered by `Observer::add_lane`.
using Lane = std::uint32_t;
inline constexpr Lane kNoLane = ~Lane{0};

enum class LaneKind : std::uint8_t { kSm, kCopyEngine, kLinkOut, kLinkIn, kNicOut, kNicIn };

/// One operation, reported when it ends.
struct Operation {
  OperationKind kind = OperationKind::kLoad;
  std::uint32_t actor = 0;  ///< of the engine; blocks and roles are actors of their own
  Lane lane = kNoLane;
  int pe = 0;
  const void* address = nullptr;  ///< read or waited for
  const void* target = nullptr;   ///< written or signalled
  Size bytes = 0;
  Epoch value = 0;  ///< signalled or waited for
  Order order = Order::kRelaxed;
  Scope scope = Scope::kSystem;
  Time begin = 0;
  Time end = 0;
  /// For a wait: the event that released it, if any. For a transfer: its requester and the time of the request.
  Lane released_by = kNoLane;
  Time released_at = 0;
  Site site = {};
  /// The tile that was computed.
  Range rows = {};
  Range columns = {};
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual Lane add_lane(int pe, LaneKind kind, const std::string& name) = 0;
  virtual void on_operation(const Operation& operation) = 0;
  /// Called when the end of work at `at` on one lane lets work start at `begin` on another. The earlier work is its
  /// predecessor in the stream, or an event.
  virtual void on_start(Lane from, Time at, Lane to, Time begin) = 0;
  /// Called with the start and end of a kernel's block, or of a role.
  virtual void on_kernel(Lane lane, const std::string& name, Time begin, Time end) = 0;
};

}  // namespace tandem::sim
