#pragma once
/// Loops over numbers of 16 bits that are computed as floats, by the widest vectors of this processor. The bits are
/// those of convert() and apply().

#include <type_traits>

#include "tandem/numeric.h"

namespace tandem::cpu::impl {

template <class T>
inline constexpr bool is_vectorised = std::is_same_v<T, bf16> || std::is_same_v<T, f16>;

/// Sets to[i] = from[i].
template <class T>
void widen(float* to, const T* from, Size count);
/// Sets to[i] = from[i], rounded.
template <class T>
void narrow(T* to, const float* from, Size count);
/// Sets to[i] = a[i] + b[i].
template <class T>
void widen_sum(float* to, const T* a, const T* b, Size count);
/// Adds from[i] to to[i].
template <class T>
void widen_add(float* to, const T* from, Size count);

}  // namespace tandem::cpu::impl
