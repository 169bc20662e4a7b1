#include "tandem/advanced/unique_id.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

#include "bootstrap/local/service_registry.h"
#include "bootstrap/protocol/wire.h"
#include "bootstrap/rendezvous/host.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "tandem/error.h"

namespace tandem {

namespace {

using bootstrap::IdContents;
using bootstrap::Key;

// The contents: magic and version; the secret; the port; the address, filled with zeros; a checksum of them all.
constexpr std::string_view kIdMagic = "tandem 1";
constexpr std::size_t kSumBytes = 16;  // the smallest that crypto_generichash takes
constexpr std::size_t kMostAddress =
    UniqueId::kBytes - kIdMagic.size() - sizeof(Key) - sizeof(std::uint32_t) - sizeof(std::uint32_t) - kSumBytes;
constexpr int kAlphabet = sodium_base64_VARIANT_URLSAFE_NO_PADDING;

void sum_of(std::span<const std::byte> bytes, std::span<std::byte> sum) {
  crypto_generichash(reinterpret_cast<unsigned char*>(sum.data()), sum.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0);
}

UniqueId::Bytes encode(const IdContents& contents) {
  Writer writer;
  writer.u32(contents.port).text(contents.address);
  UniqueId::Bytes bytes{};
  auto at = std::copy(view(kIdMagic).begin(), view(kIdMagic).end(), bytes.begin());
  at = std::copy(contents.secret.begin(), contents.secret.end(), at);
  std::copy(writer.result().begin(), writer.result().end(), at);
  const std::span all(bytes);
  sum_of(all.first(all.size() - kSumBytes), all.last(kSumBytes));
  return bytes;
}

/// The rendezvous that this process hosts.
bootstrap::ServiceRegistry<bootstrap::Host>& hosts() {
  static bootstrap::ServiceRegistry<bootstrap::Host> all;
  return all;
}

}  // namespace

bootstrap::IdContents bootstrap::contents_of(const UniqueId& id) {
  Reader reader(View(id.bytes()).subspan(kIdMagic.size() + sizeof(Key)));
  IdContents contents;
  std::copy_n(id.bytes().begin() + kIdMagic.size(), sizeof(Key), contents.secret.begin());
  const std::uint32_t port = reader.u32();
  if (port == 0 || port > 65535) throw BadMessage(fmt::format("port: {} given, allowed are 1 to 65535", port));
  contents.port = static_cast<std::uint16_t>(port);
  contents.address = reader.text();
  return contents;
}

UniqueId bootstrap::id_of(const IdContents& contents) { return UniqueId::from_bytes(encode(contents)); }

std::string bootstrap::local_name(const IdContents& contents) {
  return "tandem-" + hex(derive(contents.secret, "local socket", Writer().u32(contents.port).result()));
}

UniqueId bootstrap::open_rendezvous(const std::string& address, const Key& secret, HandOff hand_off) {
  if (address.empty() || address.size() > kMostAddress)
    throw InvalidArgument(
        fmt::format("address: one of {} characters given, allowed are 1 to {}", address.size(), kMostAddress));
  return keep_rendezvous(std::make_unique<Host>(secret, address, std::move(hand_off)));
}

UniqueId bootstrap::keep_rendezvous(std::unique_ptr<Host> host) {
  const UniqueId id = id_of(host->contents());
  hosts().add(std::move(host));
  return id;
}

UniqueId UniqueId::create(const std::string& address) {
  return bootstrap::open_rendezvous(address, bootstrap::random_key());
}

UniqueId UniqueId::from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() != kBytes)
    throw InvalidArgument(fmt::format("unique id: {} bytes given, it has {}", bytes.size(), kBytes));
  UniqueId id;
  std::copy(bytes.begin(), bytes.end(), id.bytes_.begin());
  std::array<std::byte, kSumBytes> sum{};
  sum_of(bytes.first(kBytes - kSumBytes), sum);
  if (!std::equal(sum.begin(), sum.end(), bytes.end() - kSumBytes) ||
      !std::equal(kIdMagic.begin(), kIdMagic.end(), bytes.begin(),
                  [](char magic, std::byte byte) { return static_cast<std::byte>(magic) == byte; }))
    throw InvalidArgument("unique id: damaged, or not from this version of Tandem");
  try {
    bootstrap::contents_of(id);
  } catch (const BadMessage& error) {
    throw InvalidArgument(fmt::format("unique id: {}", error.what()));
  }
  return id;
}

UniqueId UniqueId::from_text(std::string_view text) {
  Bytes bytes{};
  std::size_t size = 0;
  const char* end = nullptr;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), text.size(), nullptr,
                        &size, &end, kAlphabet) != 0 ||
      end != text.data() + text.size())
    throw InvalidArgument(
        fmt::format("unique id: {} characters given, allowed is the result of an id's text()", text.size()));
  return from_bytes(std::span(bytes).first(size));
}

std::string UniqueId::text() const {
  std::string text(sodium_base64_ENCODED_LEN(kBytes, kAlphabet), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes_.data()), kBytes, kAlphabet);
  text.pop_back();  // the closing zero
  return text;
}

}  // namespace tandem
