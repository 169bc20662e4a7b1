#include "base/cpu/long_copy.h"

#include <cstdint>
#include <cstring>

// ThreadSanitizer does not see these stores.
#if defined(__SSE2__) && !defined(TANDEM_SANITIZER_FIBERS)
#include <emmintrin.h>
#define TANDEM_STREAMS 1
#endif

namespace tandem::cpu {

#if defined(TANDEM_STREAMS)

namespace {

constexpr Size kPage = 4096;
constexpr Size kPages = 4;  // that are copied side by side
constexpr Size kLine = 64;

/// `to` is a multiple of 16.
void stream_line(std::byte* to, const std::byte* from) {
  auto* const there = reinterpret_cast<__m128i*>(to);
  const auto* const here = reinterpret_cast<const __m128i*>(from);
  const __m128i a = _mm_loadu_si128(here), b = _mm_loadu_si128(here + 1);
  const __m128i c = _mm_loadu_si128(here + 2), d = _mm_loadu_si128(here + 3);
  _mm_stream_si128(there, a);
  _mm_stream_si128(there + 1, b);
  _mm_stream_si128(there + 2, c);
  _mm_stream_si128(there + 3, d);
}

}  // namespace

void copy_past_caches(void* to, const void* from, Size bytes) {
  auto* there = static_cast<std::byte*>(to);
  const auto* here = static_cast<const std::byte*>(from);
  const Size head = min(bytes, static_cast<Size>(-reinterpret_cast<std::uintptr_t>(to) % kLine));
  std::memcpy(there, here, static_cast<std::size_t>(head));
  there += head;
  here += head;
  for (bytes -= head; bytes >= kPages * kPage; bytes -= kPages * kPage) {
    for (Size line = 0; line < kPage; line += kLine)
      for (Size page = 0; page < kPages; ++page) stream_line(there + page * kPage + line, here + page * kPage + line);
    there += kPages * kPage;
    here += kPages * kPage;
  }
  std::memcpy(there, here, static_cast<std::size_t>(bytes));
  _mm_sfence();
}

#else

void copy_past_caches(void* to, const void* from, Size bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

#endif

}  // namespace tandem::cpu
