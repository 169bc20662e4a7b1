// Messages of a split.
#include "bootstrap/rendezvous/split.h"

#include <gtest/gtest.h>

#include <set>

#include "bootstrap/proxy.h"
#include "bootstrap/timeout.h"

namespace tandem::bootstrap {
namespace {

std::string text_of(View bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// PEs 0 and 2, and PE 1, twice.
std::vector<UniqueId> split_twice(const UniqueId& id, int pe) {
  WorldMember member(id, pe, 3, kTimeout);
  std::vector<UniqueId> made;
  for (int i = 0; i < 2; ++i) {
    const auto place = split(member, pe % 2, 0);
    WorldMember part(place->id, place->pe, place->pes, kTimeout);
    part.barrier("the part's barrier");
    made.push_back(place->id);
  }
  return made;
}

TEST(Split, SendsNoSecret) {
  const UniqueId id = UniqueId::create();
  testing::Proxy proxy(id);
  std::vector<std::vector<UniqueId>> ids(3);
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int pe = 0; pe < 3; ++pe)
    threads.emplace_back([&, pe] { ids[static_cast<std::size_t>(pe)] = split_twice(proxy.id(), pe); });
  for (std::thread& thread : threads) thread.join();
  const std::string heard = proxy.heard();
  EXPECT_TRUE(contains(heard, "split"));  // the wire was heard
  EXPECT_FALSE(contains(heard, text_of(contents_of(id).secret)));
  std::set<std::string> secrets{text_of(contents_of(id).secret)};
  for (const auto& of_pe : ids)
    for (const UniqueId& made : of_pe) {
      const std::string secret = text_of(contents_of(made).secret);
      EXPECT_FALSE(contains(heard, secret));
      EXPECT_FALSE(contains(heard, made.text().substr(16, 32)));
      secrets.insert(secret);
    }
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_EQ(secrets.size(), 5U);  // the world's, and one for each color of each split
}

}  // namespace
}  // namespace tandem::bootstrap
