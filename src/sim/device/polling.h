#pragma once
/// Polling loops: they look at a word again and again, and hang when nothing else can happen any more.

#include <array>
#include <cstdint>

#include "tandem/impl/site.h"
#include "tandem/signal.h"

namespace tandem::sim {

/// The polling state of a whole simulation.
struct Polling {
  /// No bounded loop makes so many looks while nobody else has anything to do.
  static constexpr std::uint64_t kMostIdleLooks = 50'000;

  std::size_t looking = 0;       ///< roles that spend time in a look now
  std::uint64_t idle_looks = 0;  ///< looks in vain in a row, while all others were blocked or looking, too
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
  /// A loop over more words than these is not recognised.
  std::array<Seen, 64> seen_;
  std::size_t count_ = 0;
};

}  // namespace tandem::sim
