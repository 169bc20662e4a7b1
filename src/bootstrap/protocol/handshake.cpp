#include "bootstrap/protocol/handshake.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "bootstrap/local/environment.h"
#include "bootstrap/local/failure.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// Throws Unheard if the connection is closed.
Frame receive_frame(const Fd& socket, FrameReader& in, const Deadline& deadline) {
  for (;;) {
    if (auto frame = in.next()) return std::move(*frame);
    if (!wait_for(socket.get(), POLLIN, deadline)) throw Timeout("rendezvous: the host does not answer");
    std::array<std::byte, 4096> chunk;
    const ssize_t got = ::recv(socket.get(), chunk.data(), chunk.size(), 0);
    if (got > 0) in.feed(View(chunk).first(static_cast<std::size_t>(got)));
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) throw Unheard("the connection was closed");
  }
}

/// Throws Unheard if the connection is closed.
void send_frame(const Fd& socket, View frame, const Deadline& deadline) {
  try {
    send_all(socket, frame, deadline);
  } catch (const Timeout&) {
    throw;
  } catch (const RuntimeFailure& error) {
    throw Unheard(error.what());
  }
}

}  // namespace

Key hello_key(const Key& secret) { return derive(secret, "hello"); }
Key challenge_key(const Key& secret, View process_nonce) { return derive(secret, "challenge", process_nonce); }

SessionKeys session_keys(const Key& secret, View process_nonce, View host_nonce) {
  Bytes both(process_nonce.begin(), process_nonce.end());
  both.insert(both.end(), host_nonce.begin(), host_nonce.end());
  return {derive(secret, "to host", both), derive(secret, "from host", both)};
}

Key nonce_of(const Frame& frame) {
  Key nonce;
  if (frame.payload.size() != nonce.size()) throw BadMessage("not a nonce");
  std::copy(frame.payload.begin(), frame.payload.end(), nonce.begin());
  return nonce;
}

Handshake shake_hands(const Fd& socket, const Key& secret, int pe, int size, const Deadline& deadline) {
  const Key nonce = random_key();
  FrameWriter out(hello_key(secret));
  FrameReader in(challenge_key(secret, nonce), kMostHandshake);
  send_frame(socket, out.frame(Kind::kHello, nonce), deadline);
  const Frame challenge = receive_frame(socket, in, deadline);
  if (challenge.kind != Kind::kChallenge) throw BadMessage("no challenge");
  const SessionKeys keys = session_keys(secret, nonce, nonce_of(challenge));
  out.set_key(keys.to_host);
  in.set_key(keys.from_host, kMostHandshake + Failure::kMostText);
  Writer join;
  join.u32(static_cast<std::uint32_t>(pe)).u32(static_cast<std::uint32_t>(size)).text(name_of_host());
  send_frame(socket, out.frame(Kind::kJoin, join.result()), deadline);
  Frame answer = receive_frame(socket, in, deadline);
  if (answer.kind == Kind::kFailed) Failure::decode(answer.payload).raise();
  if (answer.kind != Kind::kWelcome) throw BadMessage("no welcome");
  return {std::move(out), std::move(in), std::move(answer.payload)};
}

}  // namespace tandem::bootstrap
