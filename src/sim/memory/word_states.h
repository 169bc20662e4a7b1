#pragma once
/// The states of signal words, for a large number of words: pages of records, which words that lie together share.

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "sim/engine/engine.h"
#include "sim/memory/cpu_names.h"

namespace tandem::sim {

struct SignalWait;

struct WordState {
  Time arrives = 0;                 ///< the last change that was sent
  std::int32_t sender = -1;         ///< the PE that sent it
  std::int32_t writer = -1;         ///< the PE whose change arrived last; -1 as long as no PE has written
  SignalWait* last_wait = nullptr;  ///< of a ring of the waits for this word, in their order
};

class WordStates {
 public:
  /// Returns the state of a word, which may change.
  WordState& of(const Signal* word) {
    const std::uintptr_t number = number_of(word);
    std::unique_ptr<Page>& page = pages_[number / kWords];
    if (!page) page = std::make_unique<Page>();
    return page->words[number % kWords];
  }
  /// Returns the state of a word, or null if it never had one.
  const WordState* find(const Signal* word) const {
    const std::uintptr_t number = number_of(word);
    const auto page = pages_.find(number / kWords);
    return page == pages_.end() ? nullptr : &page->second->words[number % kWords];
  }

 private:
  static constexpr std::uintptr_t kWords = 128;  ///< of a page
  struct Page {
    WordState words[kWords];
  };
  static std::uintptr_t number_of(const Signal* word) {
    return reinterpret_cast<std::uintptr_t>(word) / sizeof(Signal);
  }

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;  // looked up, never iterated
};

}  // namespace tandem::sim
