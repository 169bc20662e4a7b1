#pragma once
/// The host's end of one connection: the handshake, then the frames of a member.

#include <vector>

#include "bootstrap/deadline.h"
#include "bootstrap/fd.h"
#include "bootstrap/handshake.h"

namespace tandem::bootstrap {

class Connection {
 public:
  /// A stranger has `kPatience` seconds to prove that it is none.
  static constexpr double kPatience = 10;

  Connection(Fd socket, const Key& secret);

  int fd() const { return socket_.get(); }
  int pe() const { return pe_; }
  bool is_member() const { return state_ == State::kMember; }
  const Deadline& deadline() const { return deadline_; }
  bool has_output() const { return !output_.empty(); }

  /// Reads what is there; the frames that are the meeting's business (kJoin and what members send). Throws BadMessage
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
  State state_ = State::kStranger;
  int pe_ = -1;
  bool closed_ = false;
  Deadline deadline_{kPatience};
  FrameReader in_;
  FrameWriter out_;
  Bytes output_;
};

}  // namespace tandem::bootstrap
