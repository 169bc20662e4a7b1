#pragma once
/// The routing of tokens to experts in device memory: its arrays, and loads of one token's entries.

#include <cstdint>
#include <utility>

#include "tandem/block.h"

namespace tandem::kernels {

constexpr int kMostTopK = 16;
constexpr int kMostPes = 64;
/// The place of a choice whose expert is here and has no row left for it.
constexpr std::int32_t kNoRoom = -2;

constexpr Size kLineWords = sizeof(LL128Line::data) / 4;
/// Words before a PE's ids in its message, which keep them at a multiple of 16 bytes. The first one is
/// header_of(tokens), and the others are -1.
constexpr Size kHeaderWords = 4;
/// Returns a number that is no expert; the inverse function is itself.
TANDEM_DEVICE constexpr std::int32_t header_of(std::int32_t tokens) { return -3 - tokens; }

/// The arrays of one routing, in 32-bit words. A token's choices lie behind one another.
struct Routing {
  std::int32_t* words = nullptr;
  int pes = 0;
  int experts_here = 0;
  int top_k = 0;
  Size max_tokens = 0;
  Size rows = 0;

  /// Choices of a PE, padded so that with the words before them they fill lines of packets.
  TANDEM_DEVICE Size choices() const { return round_up(kHeaderWords + max_tokens * top_k, kLineWords) - kHeaderWords; }
  TANDEM_DEVICE std::int32_t* tokens() const { return words; }
  TANDEM_DEVICE std::int32_t* counts() const { return tokens() + round_up(pes, 4); }
  TANDEM_DEVICE std::int32_t* starts() const { return counts() + round_up(experts_here, 4); }
  TANDEM_DEVICE std::int32_t* slots() const { return starts() + round_up(experts_here + 1, 4); }
  /// A PE's message: its header, and its ids.
  TANDEM_DEVICE std::int32_t* message(int pe) const {
    return slots() + round_up(rows, 4) + pe * (kHeaderWords + choices());
  }
  TANDEM_DEVICE std::int32_t* ids(int pe) const { return message(pe) + kHeaderWords; }
  /// Valid for choices whose expert is here.
  TANDEM_DEVICE std::int32_t* places(int pe) const { return message(pes) + pe * choices(); }
  TANDEM_DEVICE float* weights(int pe) const { return reinterpret_cast<float*>(places(pes)) + pe * choices(); }
  TANDEM_DEVICE Size bytes() const { return (weights(pes) - reinterpret_cast<float*>(words)) * Size{sizeof(float)}; }
};

/// A constant as an argument.
template <int kValue>
struct Number {
  TANDEM_DEVICE constexpr operator int() const { return kValue; }  // NOLINT(google-explicit-constructor)
};
template <class F, int... kNumbers>
TANDEM_DEVICE void for_numbers_of(std::integer_sequence<int, kNumbers...>, const F& f) {
  (f(Number<kNumbers>()), ...);
}
/// Calls f(0), f(1), ... with constants, so that what they index stays in a GPU's registers.
template <int kCount, class F>
TANDEM_DEVICE void for_numbers(const F& f) {
  for_numbers_of(std::make_integer_sequence<int, kCount>(), f);
}

/// Some scalars, known to all threads.
template <class T, int kMost>
struct Few {
  T of[kMost];
};
/// A token's entries in one of the arrays.
template <class T>
using Choices = Few<T, kMostTopK>;

/// Returns a token's entry `k`, 0 beyond the last one.
template <class T>
TANDEM_DEVICE T entry_of(const Choices<T>& entries, int k) {
  T entry{};
  for_numbers<kMostTopK>([&](auto number) { entry = number == k ? entries.of[number] : entry; });
  return entry;
}

/// Loads `count` scalars at once, and fills the rest with `otherwise`.
template <int kMost, class T, class Block>
TANDEM_DEVICE Few<T, kMost> load_few(Block& block, const T* from, int count, T otherwise) {
  Few<T, kMost> few;
  for_numbers<kMost>([&](auto i) { few.of[i] = i < count ? block.load_scalar(from + i) : otherwise; });
  return few;
}
template <class T, class Block>
TANDEM_DEVICE Choices<T> load_choices(Block& block, const T* from, int count, T otherwise) {
  return load_few<kMostTopK>(block, from, count, otherwise);
}

/// Loads a token's ids.
template <class Block>
TANDEM_DEVICE Choices<std::int32_t> load_ids(Block& block, const Routing& r, int pe, Size token) {
  return load_choices(block, r.ids(pe) + token * r.top_k, r.top_k, -1);
}
/// The choices of a token whose experts are here, a bit each.
TANDEM_DEVICE inline std::uint32_t choices_here(const Routing& r, int me, const Choices<std::int32_t>& ids) {
  const int first = me * r.experts_here;
  std::uint32_t here = 0;
  for_numbers<kMostTopK>(
      [&](auto k) { here |= (ids.of[k] >= first && ids.of[k] < first + r.experts_here ? 1U : 0U) << k; });
  return here;
}

/// Loads the entries of the choices in `wanted`, one behind the other, and fills the rest with `otherwise`.
template <class T, class Block>
TANDEM_DEVICE Choices<T> load_wanted(Block& block, const T* from, std::uint32_t wanted, T otherwise) {
  Choices<T> entries;
  int k = -1;
  for_numbers<kMostTopK>([&](auto i) {
    entries.of[i] = otherwise;
    if (wanted >> (k + 1) == 0) return;
    do ++k;
    while ((wanted >> k & 1U) == 0);
    entries.of[i] = block.load_scalar(from + k);
  });
  return entries;
}

/// Loads the places of a token's choices whose experts are here, in their order and without gaps; then -1.
template <class Block>
TANDEM_DEVICE Choices<std::int32_t> load_places(Block& block, const Routing& r, int pe, Size token,
                                                const Choices<std::int32_t>& ids) {
  return load_wanted(block, static_cast<const std::int32_t*>(r.places(pe) + token * r.top_k),
                     choices_here(r, block.pe(), ids), std::int32_t{-1});
}

/// Returns the PEs with an expert of the token, a bit each.
TANDEM_DEVICE inline std::uint64_t pes_of(const Routing& routing, const Choices<std::int32_t>& ids) {
  std::uint64_t pes = 0;
  for_numbers<kMostTopK>([&](auto k) {
    if (ids.of[k] >= 0) pes |= std::uint64_t{1} << ids.of[k] / routing.experts_here;
  });
  return pes;
}

/// Returns whether any of the token's experts is on this PE.
TANDEM_DEVICE inline bool any_here(const Choices<std::int32_t>& places) {
  bool any = false;
  for_numbers<kMostTopK>([&](auto k) { any = any || places.of[k] != -1; });
  return any;
}

}  // namespace tandem::kernels
