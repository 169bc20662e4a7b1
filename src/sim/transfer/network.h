#pragma once
/// Links, NICs and local memory as resources that are reserved chunk by chunk, in the order in which chunks ask.
///
/// Each resource (a port's direction, a mesh link, a NIC's direction, a PE's memory) serves one chunk at a time at its
/// full rate, so that flows that share it get shares of it. A global max-min solver would be more exact for fluid flows
/// and costs a thousand times more.

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
  /// The rate of `numerator` parts in `denominator`.
  Rate share(int numerator, int denominator) const {
    Rate result;
    result.mb_per_s_ = mb_per_s_ * numerator / denominator;
    return result;
  }

 private:
  std::int64_t mb_per_s_ = 0;
};

/// The times of a chunk's way.
struct Passage {
  Time begin = 0;
  Time sent = 0;      // its first resource is free for the next chunk
  Time received = 0;  // so are all of them
  Time arrived = 0;   // it is visible at its destination

  /// When the one who moves the data may ask for its next chunk. A reader has no more under way than comes in.
  Time next(bool reads) const { return reads ? received : sent; }
};

/// Who asked for a chunk's passage, and when: it may have waited in a queue before the network got it.
struct Issuer {
  Lane lane = kNoLane;
  Time since = 0;
};

/// A chunk on a resource, for whoever draws timelines.
struct Occupation {
  int resource = 0;
  int pe = 0;  // at whose end the resource is
  bool is_nic = false;
  bool is_out = false;
  Time begin = 0;
  Time end = 0;
  Size bytes = 0;
  Issuer issuer = {};
};

/// Who drives a transfer: decides what share of the port's rate can be had.
enum class Driver { kStores, kLoads, kCopyEngine, kNic };

class Network {
 public:
  Network(const Topology& topology, const Machine& machine, int pes);

  /// Told of every chunk on every link and NIC.
  std::function<void(const Occupation&)> watch;

  /// Reserves the way from one PE's memory to another's (or within one) for `bytes`, from `ready` on.
  Passage pass(int from, int to, Size bytes, Driver driver, Time ready, const Issuer& issuer = {});
  /// What one message of a NIC costs at least, whatever its size.
  Time message_gap() const { return message_gap_; }
  Time latency(int from, int to) const;

  /// In what pieces a transfer asks for its resources: small enough to share, few enough to be cheap.
  static Size chunk(Size bytes) { return std::clamp<Size>(bytes / 4, Size{512} << 10, Size{1} << 20); }

  /// Time for which each resource was busy, by topology's resource number; for utilisation figures.
  const std::vector<Time>& busy() const { return busy_; }

  /// Throws RuntimeFailure where a resource has moved more bytes until `end` than its rate allows, or has chunks under
  /// way then: somebody did not wait for his data, and the predicted time is too short.
  void check_all_moved(Time end) const;

 private:
  struct State {
    Time free = 0;
    Size bytes = 0;  // so far
    int last_peer = -1;
  };

  Time reserve(std::size_t resource, Size bytes, Time took, Time ready);

  const Topology& topology_;
  std::vector<State> resources_;  // topology's, then one memory a PE
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
