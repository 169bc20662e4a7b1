#pragma once
/// Keys, and message authentication codes under them (libsodium's crypto_auth: HMAC-SHA512-256).

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/serial.h"

namespace tandem::bootstrap {

using Mac = std::array<std::byte, 32>;

/// Overwrites `bytes`. The compiler cannot remove this, even if the bytes are not read again.
void wipe(std::span<std::byte> bytes);

/// A secret or a nonce. Its destructor overwrites it, so that memory that is used again holds no secrets.
struct Key : std::array<std::byte, 32> {
  ~Key() { wipe(*this); }
};

/// Returns a key from the system's random generator. Throws RuntimeFailure if that fails.
Key random_key();
Mac authenticate(const Key& key, View message);
/// Compares in constant time.
bool is_authentic(const Key& key, View message, View mac);
/// Derives a key for one purpose. `key` cannot be computed from it.
Key derive(const Key& key, std::string_view purpose, View salt = {});

/// Encrypts and authenticates `plain` (libsodium's crypto_secretbox) with a fresh nonce in front.
Bytes encrypt(const Key& key, View plain);
/// Returns nothing if `encrypted` was not made with that key.
std::optional<Bytes> decrypt(const Key& key, View encrypted);

std::string hex(View bytes);

}  // namespace tandem::bootstrap
