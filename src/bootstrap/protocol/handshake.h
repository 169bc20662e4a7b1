#pragma once
/// The handshake between a process and the host of a rendezvous. Both prove the secret without sending it: each answers
/// the other's fresh nonce. Later frames are authenticated under keys of this connection and direction.
///
///   process                         host
///   hello(nonce)          ->
///                         <-        challenge(nonce)
///   join(pe, size, host)  ->                              under keys from the secret and both nonces
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
/// Returns the only field of hello and challenge. Throws BadMessage if it is missing.
Key nonce_of(const Frame& frame);

/// Thrown if the host closed the connection before it answered the hello. Another attempt may succeed.
class Unheard : public BadMessage {
 public:
  using BadMessage::BadMessage;
};

/// The process's end of a successful handshake.
struct Handshake {
  FrameWriter out;
  FrameReader in;
  Bytes welcome;
};

/// Joins as PE `pe` of `size`. Throws the error that the host answers instead of a welcome, Timeout, BadMessage or
/// Unheard.
Handshake shake_hands(const Fd& socket, const Key& secret, int pe, int size, const Deadline& deadline);

}  // namespace tandem::bootstrap
