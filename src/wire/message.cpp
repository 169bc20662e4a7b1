#include "wire/message.h"

#include <fmt/format.h>
#include <sodium.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tandem/error.h"

namespace tandem::wire {

namespace {

constexpr std::size_t kMacBytes = crypto_aead_chacha20poly1305_ietf_ABYTES;
constexpr std::size_t kOpenBytes = static_cast<std::size_t>(kHeaderBytes) - kMacBytes;  // of a header, without the code
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == sizeof(bootstrap::Key));

using Nonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

/// No number comes twice under one key.
Nonce nonce_of(std::uint64_t number) {
  Nonce nonce{};
  std::memcpy(nonce.data(), &number, sizeof number);
  return nonce;
}

/// The layout of a header in a message.
struct Fields {
  std::uint8_t kind;
  std::uint8_t op;
  std::uint8_t has_word;
  std::uint8_t precedes_word;
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t bytes;
  std::uint64_t number;
  std::uint64_t offset;
  std::uint64_t word;
  std::uint64_t value;
};
static_assert(sizeof(Fields) == kOpenBytes);

Fields fields_of(const Header& header) {
  Fields fields{};
  fields.kind = static_cast<std::uint8_t>(header.kind);
  fields.op = static_cast<std::uint8_t>(header.op);
  fields.has_word = header.has_word ? 1 : 0;
  fields.precedes_word = header.precedes_word ? 1 : 0;
  fields.from = static_cast<std::uint32_t>(header.from);
  fields.to = static_cast<std::uint32_t>(header.to);
  fields.number = header.number;
  fields.offset = static_cast<std::uint64_t>(header.offset);
  fields.bytes = static_cast<std::uint32_t>(header.bytes);
  fields.word = static_cast<std::uint64_t>(header.word);
  fields.value = header.value;
  return fields;
}

Header header_of(const Fields& fields) {
  Header header;
  header.kind = static_cast<Kind>(fields.kind);
  header.op = static_cast<SignalOp>(fields.op);
  header.has_word = fields.has_word != 0;
  header.precedes_word = fields.precedes_word != 0;
  header.from = static_cast<int>(fields.from);
  header.to = static_cast<int>(fields.to);
  header.number = fields.number;
  header.offset = static_cast<Size>(fields.offset);
  header.bytes = static_cast<Size>(fields.bytes);
  header.word = static_cast<Size>(fields.word);
  header.value = fields.value;
  return header;
}

bootstrap::Key key_of_pair(const bootstrap::Key& secret, int from, int to) {
  const Bytes pair = Writer().u32(static_cast<std::uint32_t>(from)).u32(static_cast<std::uint32_t>(to)).result();
  return bootstrap::derive(secret, "messages", pair);
}

const unsigned char* raw(const void* bytes) { return static_cast<const unsigned char*>(bytes); }
unsigned char* raw(void* bytes) { return static_cast<unsigned char*>(bytes); }

}  // namespace

Seal seal_of_environment() {
  const char* const text = std::getenv("TANDEM_SEAL");
  const std::string choice = text == nullptr ? "" : text;
  if (choice.empty() || choice == "headers") return Seal::kHeaders;
  if (choice == "all") return Seal::kAll;
  throw InvalidArgument(fmt::format("TANDEM_SEAL: '{}' given, allowed are headers and all", choice));
}

Keys::Keys(const bootstrap::Key& secret, Seal seal, int pes, int me) : seal_(seal), me_(me) {
  if (sodium_init() < 0) throw RuntimeFailure("several nodes: libsodium does not start");
  for (int pe = 0; pe < pes; ++pe) {
    to_.push_back(key_of_pair(secret, me, pe));
    from_.push_back(key_of_pair(secret, pe, me));
  }
}

std::array<std::byte, kHeaderBytes> Keys::seal(const Header& header, std::span<std::byte> data) const {
  const Fields fields = fields_of(header);
  std::array<std::byte, kHeaderBytes> sealed{};
  std::memcpy(sealed.data(), &fields, sizeof fields);
  const std::span<std::byte> covered = seal_ == Seal::kAll ? data : std::span<std::byte>{};
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(raw(covered.data()), raw(sealed.data() + kOpenBytes), nullptr,
                                                     raw(covered.data()), covered.size(), raw(sealed.data()),
                                                     kOpenBytes, nullptr, nonce_of(header.number).data(),
                                                     raw(to_[static_cast<std::size_t>(header.to)].data()));
  return sealed;
}

std::optional<Header> Keys::open(View message, Bytes& plain) const {
  plain.clear();
  if (message.size() < static_cast<std::size_t>(kHeaderBytes)) return std::nullopt;
  Fields fields;
  std::memcpy(&fields, message.data(), sizeof fields);
  if (fields.from >= from_.size() || fields.to != static_cast<std::uint32_t>(me_) ||
      fields.from == static_cast<std::uint32_t>(me_))
    return std::nullopt;
  const View data = message.subspan(static_cast<std::size_t>(kHeaderBytes));
  const View covered = seal_ == Seal::kAll ? data : View{};
  plain.resize(covered.size());
  if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(
          raw(plain.data()), nullptr, raw(covered.data()), covered.size(), raw(message.data() + kOpenBytes),
          raw(message.data()), kOpenBytes, nonce_of(fields.number).data(), raw(from_[fields.from].data())) != 0)
    return std::nullopt;
  const Header header = header_of(fields);
  if (fields.kind > static_cast<std::uint8_t>(Kind::kBeat) || fields.op > static_cast<std::uint8_t>(SignalOp::kAdd) ||
      static_cast<Size>(data.size()) != (carries_data(header.kind) ? header.bytes : 0))
    return std::nullopt;
  return header;
}

}  // namespace tandem::wire
