// Ids as they are handed over.
#include "tandem/advanced/unique_id.h"

#include <gmock/gmock.h>
#include <sodium.h>

#include <random>

#include "bootstrap/rendezvous/id_contents.h"
#include "tandem/error.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(UniqueIdTest, SurvivesBytesAndText) {
  const UniqueId id = UniqueId::create();
  EXPECT_EQ(UniqueId::from_bytes(id.bytes()), id);
  EXPECT_EQ(UniqueId::from_text(id.text()), id);
  EXPECT_EQ(id.text().find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
            std::string::npos);
}

TEST(UniqueIdTest, EachHasItsOwnPortAndSecret) {
  const auto a = bootstrap::contents_of(UniqueId::create());
  const auto b = bootstrap::contents_of(UniqueId::create("127.0.0.2"));
  EXPECT_EQ(a.address, "127.0.0.1");
  EXPECT_EQ(b.address, "127.0.0.2");
  EXPECT_NE(a.port, b.port);
  EXPECT_NE(a.secret, b.secret);
}

TEST(UniqueIdTest, EveryDamagedByteIsSeen) {
  const UniqueId id = UniqueId::create();
  for (std::size_t i = 0; i < UniqueId::kBytes; ++i) {
    UniqueId::Bytes damaged = id.bytes();
    damaged[i] ^= std::byte{1};
    EXPECT_THROW(UniqueId::from_bytes(damaged), InvalidArgument) << i;
  }
}

TEST(UniqueIdTest, PortsOutOfRangeAreRefused) {
  constexpr std::size_t port_at = 40;  // behind magic and secret
  constexpr std::size_t sum_at = UniqueId::kBytes - crypto_generichash_BYTES_MIN;
  for (const std::uint32_t port : {0U, 65536U, 0xffffffffU}) {
    UniqueId::Bytes bytes = UniqueId::create().bytes();
    for (std::size_t i = 0; i < 4; ++i) bytes[port_at + i] = static_cast<std::byte>(port >> (8 * i));
    auto* const raw = reinterpret_cast<unsigned char*>(bytes.data());
    crypto_generichash(raw + sum_at, crypto_generichash_BYTES_MIN, raw, sum_at, nullptr, 0);
    try {
      UniqueId::from_bytes(bytes);
      ADD_FAILURE() << "port " << port << " is taken";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.what(), "unique id: port: " + std::to_string(port) + " given, allowed are 1 to 65535");
    }
  }
}

TEST(UniqueIdTest, WhatIsNoIdIsRefused) {
  const std::string text = UniqueId::create().text();
  EXPECT_THROW(UniqueId::from_text(""), InvalidArgument);
  try {
    UniqueId::from_text("ab?de");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "unique id: 5 characters given, allowed is the result of an id's text()");
  }
  EXPECT_THROW(UniqueId::from_text(text.substr(1)), InvalidArgument);
  EXPECT_THROW(UniqueId::from_text(text + "A"), InvalidArgument);
  EXPECT_THROW(UniqueId::from_text(text + text), InvalidArgument);
  EXPECT_THROW(UniqueId::from_text("!" + text.substr(1)), InvalidArgument);
  EXPECT_THROW(UniqueId::from_bytes(std::vector<std::byte>(127)), InvalidArgument);
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    UniqueId::Bytes bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_THROW(UniqueId::from_bytes(bytes), InvalidArgument);
  }
}

TEST(UniqueIdTest, AnAddressThatIsNotThisHostsIsRefused) {
  EXPECT_THROW(UniqueId::create(""), InvalidArgument);
  EXPECT_THROW(UniqueId::create(std::string(100, 'a')), InvalidArgument);
  try {
    UniqueId::create("192.0.2.1");  // of RFC 5737: no host has it
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("192.0.2.1"));
  }
}

}  // namespace
}  // namespace tandem
