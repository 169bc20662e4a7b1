#pragma once
/// Loops that look at a word again and again: when nothing else can happen any more, they wait for ever.

#include <array>
#include <cstdint>

#include "tandem/signal.h"
#include "tandem/site.h"

namespace tandem::sim {

/// Of a whole simulation.
struct Polling {
  /// More than any bounded loop makes while nobody else has anything to do.
  static constexpr std::uint64_t kMostIdleLooks = 50'000;

  std::size_t looking = 0;       ///< roles that a look takes time of now
  std::uint64_t idle_looks = 0;  ///< in vain, one after the other, while all others were blocked or looking, too
};

/// One look at a word.
struct Look {
  const char* operation = "";
  const void* word = nullptr;
  int bytes = 8;
  Cmp cmp = Cmp::kNe;  ///< the loop goes on until the word compares true
  Epoch value = 0;
};

/// What one role has looked at since it did anything else.
class Looks {
 public:
  /// Whether it has looked at this word.
  bool has(const void* word) const;
  /// Remembers a word's value; returns whether that is the remembered one.
  bool is_same(const void* word, std::uint64_t value);
  void clear() { count_ = 0; }

 private:
  struct Seen {
    const void* word;
    std::uint64_t value;
  };
  /// A loop that polls more words than these is not known as one.
  std::array<Seen, 64> seen_;
  std::size_t count_ = 0;
};

}  // namespace tandem::sim
