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

/// Overwrites `bytes`, even where nobody reads them afterwards.
void wipe(std::span<std::byte> bytes);

/// A secret or a nonce. Its destructor overwrites it, so that memory that is used again holds no secrets.
struct Key : std::array<std::byte, 32> {
  ~Key() { wipe(*this); }
};

/// From the system's generator. Throws RuntimeFailure where that does not work.
Key random_key();
Mac authenticate(const Key& key, View message);
/// In constant time.
bool is_authentic(const Key& key, View message, View mac);
/// A key for one purpose: nobody learns `key` from it.
Key derive(const Key& key, std::string_view purpose, View salt = {});

/// `plain` encrypted and authenticated (libsodium's crypto_secretbox), behind a fresh nonce.
Bytes encrypt(const Key& key, View plain);
/// Nothing where `encrypted` was not made with that key.
std::optional<Bytes> decrypt(const Key& key, View encrypted);

std::string hex(View bytes);

}  // namespace tandem::bootstrap
