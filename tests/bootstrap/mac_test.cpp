// Keys and what they prove.
#include "bootstrap/protocol/mac.h"

#include <gmock/gmock.h>

#include <memory>

namespace tandem::bootstrap {
namespace {

TEST(KeyTest, IsOverwrittenWhenItIsDestroyed) {
  alignas(Key) std::array<unsigned char, sizeof(Key)> memory{};
  Key* const key = std::construct_at(reinterpret_cast<Key*>(memory.data()), random_key());
  EXPECT_THAT(memory, ::testing::Contains(::testing::Ne(0)));
  std::destroy_at(key);
  EXPECT_THAT(memory, ::testing::Each(0));
}

TEST(Encryption, IsReadWithItsKeyAlone) {
  const Key key = random_key();
  const Bytes plain(64, std::byte{7});
  Bytes encrypted = encrypt(key, plain);
  EXPECT_EQ(decrypt(key, encrypted), plain);
  EXPECT_EQ(decrypt(random_key(), encrypted), std::nullopt);
  EXPECT_NE(encrypt(key, plain), encrypted);  // the nonce is fresh
  EXPECT_EQ(std::search(encrypted.begin(), encrypted.end(), plain.begin(), plain.begin() + 8), encrypted.end());
  for (std::byte& byte : encrypted) {
    byte ^= std::byte{1};
    EXPECT_EQ(decrypt(key, encrypted), std::nullopt);
    byte ^= std::byte{1};
  }
  EXPECT_EQ(decrypt(key, View(encrypted).first(39)), std::nullopt);
}

}  // namespace
}  // namespace tandem::bootstrap
