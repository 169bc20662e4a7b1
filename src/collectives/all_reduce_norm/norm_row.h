#pragma once
/// The part of all_reduce_norm behind the sums: a row's bias, residual, norm and quantisation.

#include <cmath>
#include <utility>

#include "collectives/all_reduce_norm/norm_output.h"

namespace tandem::kernels {

/// One row.
template <class T, class Q, class Block>
class NormRow {
 public:
  TANDEM_DEVICE NormRow(Block& block, const NormArgs<T, Q>& a, const NormPlace& place, Size step)
      : block_(block),
        a_(a),
        place_(place),
        pieces_({0, a.hidden}, step),
        in_pieces_(a.hidden > step),
        kept_(a.sum ? a.sum.local() + place.held * a.hidden : a.kept + Size{block.index()} * a.hidden) {}

  /// `sums(piece)` returns the sums over all PEs, for the pieces in order. `is_partial`: bias and residual are not in
  /// them yet, and they are not stored.
  template <class Sums>
  TANDEM_DEVICE void run(bool is_partial, const Sums& sums) {
    float total = 0;
    for (const Range piece : pieces_) {
      last_ = sums(piece);
      if (is_partial) {
        last_ = completed(piece, std::move(last_));
        keep(piece);
      }
      if (a_.norm == Norm::kRms) total += block_.sum(last_.map([](float x) { return x * x; }));
      if (a_.norm == Norm::kLayer) total += block_.sum(last_);
    }
    normalise(total);
    if constexpr (std::is_same_v<Q, fp8_e4m3>) {
      // One loop serves both passes and all scales: copies of it would need more registers than there are.
      float greatest = 0;
      float inverse = 1.0F / a_.scale;
      for (bool finds = a_.quantisation == Quantisation::kRow;; finds = false) {
        for (const Range piece : pieces_) {
          const Values y = normed(piece);
          if (finds)
            greatest = apply(ReduceOp::kMax, greatest, block_.greatest(magnitudes(y)));
          else
            write_normed(
                block_, a_, place_, piece,
                a_.quantisation == Quantisation::kGroup ? scaled_by_groups(block_, a_, place_, piece, y) : y * inverse);
        }
        if (!finds) break;
        inverse = 1.0F / write_row_scale(block_, a_, place_, greatest);
      }
    } else {
      for (const Range piece : pieces_) write_normed(block_, a_, place_, piece, normed(piece));
    }
  }

 private:
  using Values = decltype(std::declval<Block&>().template load<float>(static_cast<const T*>(nullptr), Range{}));

  TANDEM_DEVICE Values completed(Range piece, Values sums) const {
    if (a_.bias != nullptr) sums = sums + block_.template load<float>(a_.bias, piece);
    if (a_.residual != nullptr) sums = sums + block_.template load<float>(a_.residual + place_.held * a_.hidden, piece);
    return sums.map([](float x) { return convert<float>(convert<T>(x)); });
  }

  TANDEM_DEVICE void keep(Range piece) const {
    if (a_.sum)
      for_pes(block_, place_.sum_to_all,
              [&](int pe) { block_.store(a_.sum.on(pe) + place_.held * a_.hidden, piece, last_); });
    else if (in_pieces_)
      block_.store(kept_, piece, last_);
  }

  /// The rounded sums again. A row of one piece stays in registers.
  TANDEM_DEVICE Values values(Range piece) const {
    return in_pieces_ ? block_.template load<float>(static_cast<const T*>(kept_), piece) : last_.copy();
  }

  TANDEM_DEVICE void normalise(float total) {
    const auto count = static_cast<float>(a_.hidden);
    if (a_.norm == Norm::kNone) return;
    if (a_.norm == Norm::kLayer) {
      const float mean = total / count;
      total = 0;
      for (const Range piece : pieces_)
        total += block_.sum(values(piece).map([mean](float x) { return (x - mean) * (x - mean); }));
      mean_ = mean;
    }
    factor_ = 1.0F / sqrtf(total / count + a_.epsilon);
  }

  TANDEM_DEVICE Values normed(Range piece) const {
    Values y = values(piece);
    if (a_.norm == Norm::kNone) return y;
    const float mean = mean_;
    const float factor = factor_;
    y = y.zip(block_.template load<float>(a_.weight, piece),
              [mean, factor](float x, float weight) { return (x - mean) * factor * weight; });
    if (a_.norm_bias != nullptr) y = y + block_.template load<float>(a_.norm_bias, piece);
    return y;
  }

  Block& block_;
  const NormArgs<T, Q>& a_;
  NormPlace place_;
  Tiles pieces_;
  bool in_pieces_;
  T* kept_;
  Values last_;
  float mean_ = 0;
  float factor_ = 1;
};

}  // namespace tandem::kernels
