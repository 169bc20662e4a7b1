#include "wire/access.h"

namespace tandem::wire {

/// Each word is stored with release order, as ThreadSanitizer expects of a word that is polled.
bool HostAccess::write_packets(std::byte* to, View data) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const std::size_t words = reinterpret_cast<std::uintptr_t>(to) % kWord == 0 ? data.size() / kWord : 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word;
    std::memcpy(&word, data.data() + i * kWord, kWord);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to + i * kWord)).store(word, std::memory_order_release);
  }
  const View rest = data.subspan(words * kWord);
  if (!rest.empty()) std::memcpy(to + words * kWord, rest.data(), rest.size());
  return false;
}

}  // namespace tandem::wire
