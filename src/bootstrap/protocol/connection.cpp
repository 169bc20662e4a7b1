#include "bootstrap/protocol/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "bootstrap/protocol/socket.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// Bytes that are read at once. The rest waits for the next poll, so that one connection cannot delay the others.
constexpr std::size_t kChunk = std::size_t{64} << 10;
/// Most bytes that may wait for a process that does not read. Beyond that its connection is closed.
constexpr std::size_t kMostOutput = std::size_t{512} << 20;

}  // namespace

Connection::Connection(Fd socket, const Key& secret, std::string address, std::set<Key>& nonces)
    : socket_(std::move(socket)),
      secret_(secret),
      address_(std::move(address)),
      nonces_(nonces),
      in_(hello_key(secret), kMostHandshake),
      out_(secret) {}

std::vector<Frame> Connection::receive() {
  std::array<std::byte, kChunk> chunk;
  const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
  if (got < 0 && errno != EAGAIN && errno != EINTR) throw BadMessage("the connection broke");
  if (got == 0) closed_ = true;
  if (got > 0) in_.feed(View(chunk).first(static_cast<std::size_t>(got)));
  std::vector<Frame> frames;
  while (auto frame = in_.next()) {
    if (state_ == State::kStranger)
      challenge(*frame);
    else
      frames.push_back(std::move(*frame));
  }
  return frames;
}

void Connection::challenge(const Frame& hello) {
  if (hello.kind != Kind::kHello) throw BadMessage("an unknown process whose first message is not hello");
  const Key nonce = nonce_of(hello);
  if (!nonces_.insert(nonce).second) throw BadMessage("a repeated hello");
  const Key own_nonce = random_key();
  out_.set_key(challenge_key(secret_, nonce));
  send(Kind::kChallenge, own_nonce);
  const SessionKeys keys = session_keys(secret_, nonce, own_nonce);
  in_.set_key(keys.to_host, kMostHandshake);
  out_.set_key(keys.from_host);
  state_ = State::kChallenged;
  deadline_ = Deadline(kJoinTimeout);
}

void Connection::admit(int pe, std::size_t most_payload) {
  pe_ = pe;
  state_ = State::kMember;
  in_.set_limit(most_payload);
}

void Connection::send(Kind kind, View payload) {
  const Bytes frame = out_.frame(kind, payload);
  output_.insert(output_.end(), frame.begin(), frame.end());
  if (output_.size() > kMostOutput) throw BadMessage("the process does not read its messages");
}

void Connection::flush() {
  try {
    const std::size_t done = send_some(socket_, output_);
    output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(done));
  } catch (const RuntimeFailure&) {
    throw BadMessage("the connection broke");
  }
}

}  // namespace tandem::bootstrap
