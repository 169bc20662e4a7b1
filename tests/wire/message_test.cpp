// Headers of messages: who can read them, and what is refused.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tandem/error.h"
#include "wire/pes.h"

namespace tandem::wire {
namespace {

using testing::key_of;

Header example() {
  Header header;
  header.from = 0;
  header.to = 1;
  header.number = 5;
  header.offset = 128;
  header.bytes = 3;
  header.has_word = true;
  header.word = 64;
  header.value = 9;
  return header;
}

Bytes message_of(const Keys& keys, const Header& header, std::string_view text) {
  Bytes data(view(text).begin(), view(text).end());
  const auto sealed = keys.seal(header, data);
  Bytes message(sealed.begin(), sealed.end());
  message.insert(message.end(), data.begin(), data.end());
  return message;
}

class Messages : public ::testing::TestWithParam<Seal> {
 protected:
  Keys keys(int me, int secret = 7) const { return {key_of(secret), GetParam(), 3, me}; }
  Bytes plain_;
};

TEST_P(Messages, ArriveAsTheyWere) {
  const auto header = keys(1).open(message_of(keys(0), example(), "abc"), plain_);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->offset, 128);
  EXPECT_EQ(header->bytes, 3);
  EXPECT_EQ(header->word, 64);
  EXPECT_EQ(header->value, 9U);
  EXPECT_EQ(header->number, 5U);
  if (GetParam() == Seal::kAll) {
    EXPECT_EQ(plain_, Bytes(view("abc").begin(), view("abc").end()));
  }
}

TEST_P(Messages, AreForOnePeOfOneWorld) {
  const Bytes message = message_of(keys(0), example(), "abc");
  EXPECT_FALSE(keys(2).open(message, plain_));
  EXPECT_FALSE(keys(1, 8).open(message, plain_));
}

TEST_P(Messages, AreRefusedWithAnyBitChanged) {
  const Bytes message = message_of(keys(0), example(), "abc");
  const std::size_t covered = GetParam() == Seal::kAll ? message.size() : static_cast<std::size_t>(kHeaderBytes);
  for (std::size_t at = 0; at < covered; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes changed = message;
      changed[at] ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(keys(1).open(changed, plain_)) << "byte " << at << " bit " << bit;
    }
}

TEST_P(Messages, AreRefusedInOtherLengths) {
  Bytes message = message_of(keys(0), example(), "abc");
  message.push_back({});
  EXPECT_FALSE(keys(1).open(message, plain_));
  while (!message.empty()) {
    message.pop_back();
    if (message.size() == static_cast<std::size_t>(kHeaderBytes) + 3) continue;
    EXPECT_FALSE(keys(1).open(message, plain_)) << message.size();
  }
}

TEST(SealedMessages, HideTheirData) {
  const Keys keys(key_of(7), Seal::kAll, 2, 0);
  const Bytes message = message_of(keys, example(), "abc");
  EXPECT_NE(Bytes(message.end() - 3, message.end()), Bytes(view("abc").begin(), view("abc").end()));
}

TEST(SealedMessages, AreChosenByTheEnvironment) {
  EXPECT_EQ(seal_of_environment(), Seal::kHeaders);
  ::setenv("TANDEM_SEAL", "all", 1);
  EXPECT_EQ(seal_of_environment(), Seal::kAll);
  ::setenv("TANDEM_SEAL", "none", 1);
  EXPECT_THROW(seal_of_environment(), InvalidArgument);
  ::unsetenv("TANDEM_SEAL");
}

INSTANTIATE_TEST_SUITE_P(Seals, Messages, ::testing::Values(Seal::kHeaders, Seal::kAll));

}  // namespace
}  // namespace tandem::wire
