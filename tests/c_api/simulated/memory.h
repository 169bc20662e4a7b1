#pragma once
/// Memory of a program in C, with words in it that say whose they are.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "c_api/simulated/process.h"
#include "tandem/error.h"

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

/// Throws InvalidArgument with the error that the stream or another PE reports.
inline void synchronize(const CPeer& peer) {
  if (tandem_synchronize(peer.world, peer.stream) != TANDEM_SUCCESS) throw InvalidArgument(tandem_last_error());
}

/// Memory of one PE: of tandem_alloc, or its own.
class Memory {
 public:
  Memory(CPeer& peer, bool symmetric, const Words& contents)
      : peer_(peer), own_(symmetric ? 0 : contents.size() + 1), size_(contents.size()), begin_(own_.data()) {
    if (symmetric) {
      EXPECT_EQ(unlike(tandem_alloc(peer.world, size_ * 4, &begin_), TANDEM_SUCCESS), "");
    }
    fill(contents);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* at() const { return begin_; }
  void fill(const Words& contents) const {
    std::copy(contents.begin(), contents.end(), static_cast<unsigned*>(begin_));
  }
  Words contents() const {
    synchronize(peer_);
    const auto* const first = static_cast<const unsigned*>(begin_);
    return {first, first + size_};
  }

 private:
  CPeer& peer_;
  mutable Words own_;
  size_t size_;
  void* begin_;
};

}  // namespace tandem::test
