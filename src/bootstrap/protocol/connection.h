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
  /// Seconds in which a stranger has to say hello, and to join after that.
  static constexpr double kHelloTimeout = 1;
  static constexpr double kJoinTimeout = 10;

  /// `address`: the other end's; empty for processes of this user on this host. A hello that is in `nonces` already is
  /// a repeated one.
  Connection(Fd socket, const Key& secret, std::string address, std::set<Key>& nonces);

  const Fd& socket() const { return socket_; }
  const std::string& address() const { return address_; }
  int pe() const { return pe_; }
  /// It has not proved that it knows the secret.
  bool is_stranger() const { return state_ == State::kStranger; }
  bool is_member() const { return state_ == State::kMember; }
  const Deadline& deadline() const { return deadline_; }
  bool has_output() const { return !output_.empty(); }

  /// Reads what is there; the frames for the coordinator (kJoin and what members send). Throws BadMessage
  /// where the other end is to be dropped. After the last frame `is_closed`.
  std::vector<Frame> receive();
  bool is_closed() const { return closed_; }

  /// It has joined as `pe`.
  void admit(int pe, std::size_t most_payload);
  void send(Kind kind, View payload);
  /// Sends what the socket takes; throws BadMessage where it is broken.
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
