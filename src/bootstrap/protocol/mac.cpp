#include "bootstrap/protocol/mac.h"

#include <sodium.h>

#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

static_assert(crypto_auth_KEYBYTES == sizeof(Key) && crypto_auth_BYTES == sizeof(Mac));
static_assert(crypto_secretbox_KEYBYTES == sizeof(Key));

const unsigned char* raw(View bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* out(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

}  // namespace

void wipe(std::span<std::byte> bytes) { sodium_memzero(bytes.data(), bytes.size()); }

Key random_key() {
  if (sodium_init() < 0) throw RuntimeFailure("rendezvous: libsodium does not start");
  Key key;
  randombytes_buf(key.data(), key.size());
  return key;
}

Mac authenticate(const Key& key, View message) {
  Mac mac;
  crypto_auth(out(mac), raw(message), message.size(), raw(key));
  return mac;
}

bool is_authentic(const Key& key, View message, View mac) {
  return mac.size() == sizeof(Mac) && crypto_auth_verify(raw(mac), raw(message), message.size(), raw(key)) == 0;
}

Key derive(const Key& key, std::string_view purpose, View salt) {
  Bytes message(view(purpose).begin(), view(purpose).end());
  message.push_back(std::byte{0});  // the zero prevents that one purpose is a prefix of another with its salt
  message.insert(message.end(), salt.begin(), salt.end());
  Key derived;
  crypto_auth(out(derived), raw(message), message.size(), raw(key));
  return derived;
}

std::string hex(View bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), raw(bytes), bytes.size());
  text.pop_back();  // the closing zero
  return text;
}

Bytes encrypt(const Key& key, View plain) {
  Bytes encrypted(crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + plain.size());
  const std::span nonce = std::span(encrypted).first(crypto_secretbox_NONCEBYTES);
  randombytes_buf(nonce.data(), nonce.size());
  crypto_secretbox_easy(out(nonce) + nonce.size(), raw(plain), plain.size(), raw(nonce), raw(key));
  return encrypted;
}

std::optional<Bytes> decrypt(const Key& key, View encrypted) {
  if (encrypted.size() < crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES) return std::nullopt;
  const View nonce = encrypted.first(crypto_secretbox_NONCEBYTES);
  const View box = encrypted.subspan(nonce.size());
  Bytes plain(box.size() - crypto_secretbox_MACBYTES);
  if (crypto_secretbox_open_easy(out(plain), raw(box), box.size(), raw(nonce), raw(key)) != 0) return std::nullopt;
  return plain;
}

}  // namespace tandem::bootstrap
