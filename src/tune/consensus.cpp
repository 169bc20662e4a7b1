#include "tune/consensus.h"

#include <algorithm>

namespace tandem::tune {

namespace {
/// A word holds the number of the round above the value, so that it only grows.
constexpr int kBits = 48;
constexpr Epoch kMask = (Epoch{1} << kBits) - 1;
}  // namespace

Consensus::Consensus(World& world)
    : world_(&world),
      values_(world.heap().signals(world.num_pes(), "agreement")),
      stream_(world.make_stream("agreement")) {}

std::vector<Epoch> Consensus::all(Epoch mine) {
  const Epoch round = ++round_ << kBits;
  stream_.launch<SignalToAll>({1, 32}, {values_, round | (mine & kMask), round});
  stream_.synchronize();
  std::vector<Epoch> words(static_cast<std::size_t>(world_->num_pes()));
  world_->copy_out(words.data(), values_.local(), static_cast<Size>(words.size() * sizeof(Epoch)));
  world_->barrier();  // no PE writes the next round before all have read this one
  for (Epoch& word : words) word &= kMask;
  return words;
}

bool Consensus::is_same(Epoch mine) {
  const std::vector<Epoch> words = all(mine);
  return std::all_of(words.begin(), words.end(), [&](Epoch word) { return word == words.front(); });
}

Epoch Consensus::most(Epoch mine) {
  const std::vector<Epoch> words = all(mine);
  return *std::max_element(words.begin(), words.end());
}

Epoch digest(const std::string& text) {
  Epoch hash = 0xCBF29CE484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return (hash >> 16) | 1;
}

}  // namespace tandem::tune
