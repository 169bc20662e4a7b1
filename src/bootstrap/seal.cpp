#include "bootstrap/seal.h"

#include <sodium.h>

#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

static_assert(crypto_auth_KEYBYTES == sizeof(Key) && crypto_auth_BYTES == sizeof(Mac));

const unsigned char* raw(View bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

}  // namespace

void wipe(std::span<std::byte> bytes) { sodium_memzero(bytes.data(), bytes.size()); }

Key random_key() {
  if (sodium_init() < 0) throw RuntimeFailure("rendezvous: libsodium does not start");
  Key key;
  randombytes_buf(key.data(), key.size());
  return key;
}

Mac seal(const Key& key, View message) {
  Mac mac;
  crypto_auth(reinterpret_cast<unsigned char*>(mac.data()), raw(message), message.size(), raw(key));
  return mac;
}

bool is_sealed(const Key& key, View message, View mac) {
  return mac.size() == sizeof(Mac) && crypto_auth_verify(raw(mac), raw(message), message.size(), raw(key)) == 0;
}

Key derive(const Key& key, std::string_view purpose, View salt) {
  Bytes message(view(purpose).begin(), view(purpose).end());
  message.push_back(std::byte{0});  // no purpose is the beginning of another with its salt
  message.insert(message.end(), salt.begin(), salt.end());
  Key derived;
  crypto_auth(reinterpret_cast<unsigned char*>(derived.data()), raw(message), message.size(), raw(key));
  return derived;
}

}  // namespace tandem::bootstrap
