#pragma once
/// The host's end of one connection: the handshake, then the frames of a member.

#include <set>
#include <string>
#include <vector>

#include "bootstrap/protocol/deadline.h"
#include "bootstrap/protocol/fd.h"
#include "bootstrap/protocol/handshake.h"

namespace tandem::bootstrap {

class Connection {
 public:
  /// Seconds that an unauthenticated connection has for its hello, and again for its join.
  static constexpr double kHelloTimeout = 1;
  static constexpr double kJoinTimeout = 10;

  /// `address` is the other end's address, or empty for processes of this user on this host. A hello whose nonce is
  /// already in `nonces` is a replay.
  Connection(Fd socket, const Key& secret, std::string address, std::set<Key>& nonces);

  const Fd& socket() const { return socket_; }
  const std::string& address() const { return address_; }
  int pe() const { return pe_; }
  /// Returns whether the other end has not proved the secret yet.
  bool is_stranger() const { return state_ == State::kStranger; }
  bool is_member() const { return state_ == State::kMember; }
  const Deadline& deadline() const { return deadline_; }
  bool has_output() const { return !output_.empty(); }

  /// Reads the available bytes and returns the frames for the coordinator (kJoin and the frames of members). Throws
  /// BadMessage if the connection is to be dropped. After the last frame `is_closed` returns true.
  std::vector<Frame> receive();
  bool is_closed() const { return closed_; }

  /// Marks the connection as joined as PE `pe`.
  void admit(int pe, std::size_t most_payload);
  void send(Kind kind, View payload);
  /// Sends as much as the socket takes. Throws BadMessage if the connection is broken.
  void flush();

 private:
  enum class State { kStranger, kChallenged, kMember };

  void challenge(const Frame& hello);

  Fd socket_;
  Key secret_;
  std::string address_;
  std::set<Key>& nonces_;
  State state_ = State::kStranger;
  int pe_ = -1;
  bool closed_ = false;
  Deadline deadline_{kHelloTimeout};
  FrameReader in_;
  FrameWriter out_;
  Bytes output_;
};

}  // namespace tandem::bootstrap
