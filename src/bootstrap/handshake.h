#pragma once
/// How a process and the host of a rendezvous prove to each other that they know the secret, without sending it: each
/// answers the other's fresh nonce. What follows is sealed under keys of this connection and direction alone.
///
///   process                         host
///   hello(nonce)          ->
///                         <-        challenge(nonce)
///   join(pe, size)        ->                              under keys from the secret and both nonces
///                         <-        welcome

#include "bootstrap/wire.h"

namespace tandem::bootstrap {

constexpr std::size_t kMostHandshake = 4096;

struct SessionKeys {
  Key to_host;
  Key from_host;
};

inline Key hello_key(const Key& secret) { return derive(secret, "hello"); }
inline Key challenge_key(const Key& secret, View process_nonce) { return derive(secret, "challenge", process_nonce); }

inline SessionKeys session_keys(const Key& secret, View process_nonce, View host_nonce) {
  Bytes both(process_nonce.begin(), process_nonce.end());
  both.insert(both.end(), host_nonce.begin(), host_nonce.end());
  return {derive(secret, "to host", both), derive(secret, "from host", both)};
}

/// The only field of hello and challenge. Throws BadMessage where it is none.
inline View nonce_of(const Frame& frame) {
  if (frame.payload.size() != sizeof(Key)) throw BadMessage("not a nonce");
  return frame.payload;
}

}  // namespace tandem::bootstrap
