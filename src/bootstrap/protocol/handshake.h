#pragma once
/// How a process and the host of a rendezvous prove to each other that they know the secret, without sending it: each
/// answers the other's fresh nonce. What follows is authenticated under keys of this connection and direction alone.
///
///   process                         host
///   hello(nonce)          ->
///                         <-        challenge(nonce)
///   join(pe, size)        ->                              under keys from the secret and both nonces
///                         <-        welcome

#include "bootstrap/protocol/fd.h"
#include "bootstrap/protocol/socket.h"
#include "bootstrap/protocol/wire.h"

namespace tandem::bootstrap {

constexpr std::size_t kMostHandshake = 4096;

struct SessionKeys {
  Key to_host;
  Key from_host;
};

Key hello_key(const Key& secret);
Key challenge_key(const Key& secret, View process_nonce);
SessionKeys session_keys(const Key& secret, View process_nonce, View host_nonce);
/// The only field of hello and challenge. Throws BadMessage where it is none.
Key nonce_of(const Frame& frame);

/// The host closed the connection before it answered the hello. Another attempt may be heard.
class Unheard : public BadMessage {
 public:
  using BadMessage::BadMessage;
};

/// The process's end of a handshake that has succeeded.
struct Handshake {
  FrameWriter out;
  FrameReader in;
  Bytes welcome;
};

/// Joins as PE `pe` of `size`. Throws what the host answers instead of a welcome, Timeout, BadMessage, Unheard.
Handshake shake_hands(const Fd& socket, const Key& secret, int pe, int size, const Deadline& deadline);

}  // namespace tandem::bootstrap
