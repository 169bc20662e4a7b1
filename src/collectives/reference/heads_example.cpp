#include "collectives/reference/heads_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tandem::kernels {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Calls f<T>() with the element type.
template <class F>
decltype(auto) of_type(DType type, const F& f) {
  if (type == DType::kF32) return f.template operator()<float>();
  if (type == DType::kF16) return f.template operator()<f16>();
  return f.template operator()<bf16>();
}

}  // namespace

float HeadsExample::lse(int pe, Size row) const {
  const Size kind = (row + number_) % 5;
  if (kind == 1) return pe == static_cast<int>(row) % pes_ ? 7.0F : -kInfinity;
  if (kind == 2) return pe % 2 == 0 ? kNan : -kInfinity;
  if (kind == 3 && pe == static_cast<int>(row + number_) % pes_) return -kInfinity;
  return static_cast<float>(-50 + (row * 3 + pe * 5 + number_) % 4);
}

float HeadsExample::partial(int pe, Size row, Size i) const {
  if (!std::isfinite(lse(pe, row))) return kNan;
  return static_cast<float>((row * 7 + pe * 3 + i * 5 + number_) % 9 - 4);
}

float HeadsExample::merged(Size row, Size i) const {
  float greatest = -kInfinity;
  for (int pe = 0; pe < pes_; ++pe)
    if (std::isfinite(lse(pe, row))) greatest = std::max(greatest, lse(pe, row));
  float sum = 0;
  float weights = 0;
  for (int pe = 0; pe < pes_; ++pe) {
    if (!std::isfinite(lse(pe, row))) continue;
    const float difference = lse(pe, row) - greatest;
    const float weight = options_.base == LseBase::kE ? std::exp(difference) : std::exp2(difference);
    weights += weight;
    sum += partial(pe, row, i) * weight;
  }
  return weights > 0 ? sum * (1.0F / weights) : 0;
}

Range HeadsExample::heads_of(int pe) const {
  return options_.own_heads ? split(options_.heads, pes_)[pe] : Range{0, options_.heads};
}

std::vector<std::byte> HeadsExample::partials(int pe) const {
  return of_type(options_.type, [&]<class T>() {
    const Size count = batch_ * options_.heads * options_.head_size;
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(T));
    for (Size i = 0; i < count; ++i) {
      const T value = convert<T>(partial(pe, i / options_.head_size, i % options_.head_size));
      std::memcpy(bytes.data() + i * Size{sizeof(T)}, &value, sizeof(T));
    }
    return bytes;
  });
}

std::vector<std::byte> HeadsExample::lses(int pe) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(batch_ * options_.heads) * sizeof(float));
  for (Size row = 0; row < batch_ * options_.heads; ++row) {
    const float value = lse(pe, row);
    std::memcpy(bytes.data() + row * Size{sizeof(float)}, &value, sizeof value);
  }
  return bytes;
}

Size HeadsExample::out_bytes(int pe) const {
  return batch_ * heads_of(pe).size() * options_.head_size * size_of(options_.type);
}

HeadsErrors HeadsExample::errors(int pe, const std::byte* out) const {
  HeadsErrors errors;
  const Range own = heads_of(pe);
  of_type(options_.type, [&]<class T>() {
    const std::byte* at = out;
    for (Size batch = 0; batch < batch_; ++batch)
      for (Size head = own.begin; head < own.end; ++head)
        for (Size i = 0; i < options_.head_size; ++i, at += sizeof(T)) {
          T raw;
          std::memcpy(&raw, at, sizeof raw);
          const auto got = convert<float>(raw);
          const auto want = convert<float>(convert<T>(merged(batch * options_.heads + head, i)));
          const float tolerance = options_.base == LseBase::kTwo ? 0.0F : 0.01F * (1 + std::abs(want));
          ++errors.checked;
          if (std::abs(got - want) <= tolerance) continue;
          if (errors.wrong++ == 0)
            errors.first = fmt::format("batch {}, head {}, element {}: {} instead of {}", batch, head, i, got, want);
        }
  });
  return errors;
}

}  // namespace tandem::kernels
