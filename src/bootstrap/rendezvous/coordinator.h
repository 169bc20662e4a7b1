#pragma once
/// The state of a world at the host of its rendezvous, without sockets: members, all-gathers under way, and the reason
/// of its end.

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bootstrap/local/failure.h"
#include "bootstrap/protocol/deadline.h"
#include "tandem/team.h"

namespace tandem::bootstrap {

/// Most bytes that a PE gives to one all-gather.
constexpr std::size_t kMostContribution = std::size_t{64} << 10;
/// Most PEs of a world.
constexpr int kMostPes = 4096;

/// One PE's contribution to an all-gather of a team. The n-th calls of all members of a team belong together.
struct Contribution {
  int first = 0, stride = 1, size = 1;
  std::uint64_t number = 0;
  std::string name;  ///< the purpose; all members give the same
  std::uint32_t timeout_ms = 0;
  Bytes blob;

  Bytes encode() const;
  static Contribution decode(View payload);
};

/// All contributions, as each member receives them.
struct Gathered {
  int first = 0, stride = 1, size = 1;
  std::uint64_t number = 0;
  std::vector<Bytes> blobs;

  Bytes encode() const;
  static Gathered decode(View payload);
};

/// Returns "0, 3, 4, ...".
std::string list_of(const std::vector<int>& numbers);

class Coordinator {
 public:
  /// `slow_s`: the seconds after which an unfinished all-gather is reported.
  explicit Coordinator(double slow_s = 60) : slow_s_(slow_s) {}

  struct Message {
    int to;
    Kind kind;
    Bytes payload;
  };

  /// Throws Error if this PE cannot join: `size` differs from the others' size, or `pe` is not in it or has joined
  /// already. Texts name the host of a PE that is gone where PEs gave several.
  void join(int pe, int size, const std::string& host = "");
  /// Throws BadMessage for a contribution that no member could send.
  void contribute(int pe, Contribution contribution);
  /// Ends the world, because the PE reported a failure.
  void fail(int pe, Failure failure);
  void leave(int pe);
  /// Ends the world, because the PE's connection broke before it left.
  void lose(int pe, const std::string& why);
  /// Ends the world. The first reason stays.
  void fail_all(Failure failure);
  /// Ends the world if a deadline has passed. The error ends with `note`.
  void look_at_clock(const std::string& note = "");
  /// Returns a line for each all-gather that became slow since the last call.
  std::vector<std::string> take_slow();
  /// Returns the next deadline.
  std::optional<Clock::time_point> next_deadline() const;

  /// Returns whether all PEs have joined.
  bool complete() const { return size_ > 0 && came_.size() == static_cast<std::size_t>(size_); }
  /// Returns whether PEs have joined, and all of them have left.
  bool over() const;

  /// Returns the messages to be sent since the last call.
  std::vector<Message> take_messages() { return std::exchange(messages_, {}); }

 private:
  enum class State { kHere, kLeft };
  /// First, stride, size and number of an all-gather.
  using Call = std::tuple<int, int, int, std::uint64_t>;
  struct Pending {
    std::string name;
    int first_caller = 0;
    Deadline deadline{0};
    double seconds = 0;
    std::optional<Deadline> slow;  // none once it was reported
    std::map<int, Bytes> blobs;    // by PE of the world
  };

  std::string name_of(int pe) const;
  void check_absent(const Call& call, const Pending& pending);
  std::string missing(const Call& call, const Pending& pending) const;

  double slow_s_;
  int size_ = 0;
  int said_by_ = 0;
  std::map<int, State> came_;
  std::map<int, std::string> hosts_;  // of the PEs that have joined
  std::map<int, std::string> refused_;
  std::map<Call, Pending> pending_;
  std::optional<Failure> failure_;
  std::vector<Message> messages_;
};

}  // namespace tandem::bootstrap
