#pragma once
/// Memory of a simulated program in C, with words in it that say whose they are.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "c_api/simulated/process.h"

namespace tandem::test {

using Words = std::vector<unsigned>;

/// Returns the data of PE `from` for PE `to` (or for all).
inline Words words(int from, int to, size_t count) {
  Words all(count);
  std::iota(all.begin(), all.end(), static_cast<unsigned>(from * 1'000'003 + to * 10'007));
  return all;
}

inline Words joined(const std::vector<Words>& parts) {
  Words all;
  for (const Words& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Memory of one PE: of tandem_alloc, or anywhere else on its GPU.
class Memory {
 public:
  Memory(CPeer& peer, bool symmetric, const Words& contents) : peer_(peer), size_(contents.size()) {
    const auto bytes = static_cast<Size>(size_ * 4);
    if (symmetric) {
      EXPECT_EQ(unlike(tandem_alloc(peer.world, size_ * 4, &begin_), TANDEM_SUCCESS), "");
    } else {
      begin_ = peer.simulated.heap().allocate_local<unsigned>(bytes / 4, "anywhere");
    }
    fill(contents);
  }
  void* at() const { return begin_; }
  void fill(const Words& contents) const {
    peer_.simulated.copy_in(begin_, contents.data(), static_cast<Size>(size_ * 4));
  }
  Words contents() const {
    Words all(size_);
    EXPECT_EQ(unlike(tandem_synchronize(peer_.world, peer_.stream), TANDEM_SUCCESS), "");
    peer_.simulated.copy_out(all.data(), begin_, static_cast<Size>(size_ * 4));
    return all;
  }

 private:
  CPeer& peer_;
  size_t size_;
  void* begin_ = nullptr;
};

}  // namespace tandem::test
