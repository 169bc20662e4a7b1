#pragma once
/// Polling loops: they look at a word again and again, and hang when no other event can happen any more.

#include <array>
#include <cstdint>

#include "tandem/impl/site.h"
#include "tandem/signal.h"

namespace tandem::sim {

/// The polling state of a whole simulation.
struct Polling {
  /// The most looks while all other roles are idle: no bounded loop makes so many.
  static constexpr std::uint64_t kMostIdleLooks = 50'000;

  std::size_t looking = 0;       ///< roles that spend time in a look now
  std::uint64_t idle_looks = 0;  ///< unsuccessful looks in a row, while all other roles were blocked or looking
};

/// One look at a word.
struct Look {
  const char* operation = "";
  const void* word = nullptr;
  int bytes = 8;
  Cmp cmp = Cmp::kNe;  ///< the loop goes on until the word compares true
  Epoch value = 0;
};

/// The words that one role has looked at since it did anything else.
class Looks {
 public:
  /// Returns whether the role has looked at this word.
  bool has(const void* word) const;
  /// Remembers a word's value. Returns whether the remembered value was the same.
  bool is_same(const void* word, std::uint64_t value);
  void clear() { count_ = 0; }

 private:
  struct Seen {
    const void* word;
    std::uint64_t value;
  };
  /// A loop over more words than these is not recognised.
  std::array<Seen, 64> seen_;
  std::size_t count_ = 0;
};

}  // namespace tandem::sim
