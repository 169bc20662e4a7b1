#pragma once
/// Links, NICs and local memory as resources that chunks reserve, in the order of their requests.
///
/// Each resource serves one chunk at a time at its full rate, so flows that share it get shares of it. Resources are a
/// port's direction, a mesh link, a NIC's direction and a PE's memory. A global max-min solver would be more exact for
/// fluid flows and costs a thousand times more.

#include <algorithm>
#include <functional>
#include <vector>

#include "machine/topology.h"
#include "sim/engine/engine.h"
#include "sim/run/observer.h"
#include "tandem/machine.h"

namespace tandem::sim {

/// Bytes a second, in units that keep the clock an integer: MB/s (1e6).
class Rate {
 public:
  explicit Rate(double gbps = 0) : mb_per_s_(static_cast<std::int64_t>(gbps * 1e3 + 0.5)) {}
  Time time(Size bytes) const { return mb_per_s_ <= 0 ? 0 : bytes * 1'000'000 / mb_per_s_; }
  bool operator<(const Rate& other) const { return mb_per_s_ < other.mb_per_s_; }
  /// Returns the rate of `numerator` parts in `denominator`.
  Rate share(int numerator, int denominator) const {
    Rate result;
    result.mb_per_s_ = mb_per_s_ * numerator / denominator;
    return result;
  }

 private:
  std::int64_t mb_per_s_ = 0;
};

/// The times of a chunk on its path.
struct Passage {
  Time begin = 0;
  Time sent = 0;      // its first resource is free for the next chunk
  Time received = 0;  // all resources are free for it
  Time arrived = 0;   // it is visible at its destination

  /// The time at which the mover may request its next chunk. A reader's requests in flight are limited by arrivals.
  Time next(bool reads) const { return reads ? received : sent; }
};

/// The requester of a chunk's transfer, and the time of the request. The chunk may have waited in a queue before.
struct Issuer {
  Lane lane = kNoLane;
  Time since = 0;
};

/// A chunk on a resource, for timelines.
struct Occupation {
  int resource = 0;
  int pe = 0;  // the resource's end
  bool is_nic = false;
  bool is_out = false;
  Time begin = 0;
  Time end = 0;
  Size bytes = 0;
  Issuer issuer = {};
};

/// The mover of a transfer, which determines the share of the port's rate.
enum class Driver { kStores, kLoads, kCopyEngine, kNic };

class Network {
 public:
  Network(const Topology& topology, const Machine& machine, int pes);

  /// Called for every chunk on every link and NIC.
  std::function<void(const Occupation&)> watch;

  /// Reserves the path from one PE's memory to another's (or within one) for `bytes`, from `ready` on.
  Passage pass(int from, int to, Size bytes, Driver driver, Time ready, const Issuer& issuer = {});
  /// Returns the least cost of one message of a NIC, for any size.
  Time message_gap() const { return message_gap_; }
  Time latency(int from, int to) const;

  /// Returns the chunk size of a transfer: small enough to share resources, large enough to be cheap.
  static Size chunk(Size bytes) { return std::clamp<Size>(bytes / 4, Size{512} << 10, Size{1} << 20); }

  /// Time for which each resource was busy, by the topology's resource number.
  const std::vector<Time>& busy() const { return busy_; }

  /// Throws RuntimeFailure if a resource has moved more bytes until `end` than its rate allows, or still has chunks in
  /// flight. Then a program did not wait for its data, and the predicted time is too short.
  void check_all_moved(Time end) const;

 private:
  struct State {
    Time free = 0;
    Size bytes = 0;  // so far
    int last_peer = -1;
  };

  Time reserve(std::size_t resource, Size bytes, Time took, Time ready);

  const Topology& topology_;
  std::vector<State> resources_;  // the topology's, then one memory for each PE
  std::vector<double> gbps_;      // of topology's
  std::vector<Time> busy_;
  std::size_t first_memory_;
  Rate memory_;
  Rate local_copy_;
  double limit_[4];  // GB/s of one port, by Driver
  double all_to_all_;
  Time message_gap_;
};

}  // namespace tandem::sim
