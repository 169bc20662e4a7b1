#pragma once
/// The same as norm_row.h for rows that a block holds in registers, in at most `kPieces` pieces of a fragment each.
///
/// Loops over pieces hold each step once, since calls of microseconds wait for their instructions. Residual and weights
/// are on their way while the block waits for sums.

#include <utility>

#include "collectives/all_reduce_norm/norm_output.h"

namespace tandem::kernels {

/// The most pieces of a row that comes in packets, which are smaller than other fragments.
inline constexpr int kHeldPieces = 3;

template <class T, class Q, class Block, int kPieces>
class HeldRow {
 public:
  using Values = typename Block::template FragmentOf<T>;
  using Sums = decltype(std::declval<Values&>().template convert<float>());

  /// Rows of at most kPieces * step elements.
  TANDEM_DEVICE HeldRow(Block& block, const NormArgs<T, Q>& a, Size step)
      : HeldRow(block, a, Range{0, a.hidden}, step) {}
  /// The elements `part` of rows, from a multiple of kScaleGroup on. Other blocks have the others.
  TANDEM_DEVICE HeldRow(Block& block, const NormArgs<T, Q>& a, Range part, Size step)
      : block_(block), a_(a), part_(part), step_(step) {}

  TANDEM_DEVICE int pieces() const { return kPieces == 1 ? 1 : static_cast<int>(ceil_div(part_.size(), step_)); }
  TANDEM_DEVICE Range piece(int k) const {
    if (kPieces == 1) return part_;
    return {part_.begin + k * step_, min(part_.begin + (k + 1) * step_, part_.end)};
  }

  /// Completes the row's sums over all PEs, which `sums_of(k, piece)` returns for piece k, and stores them if they are
  /// asked for.
  template <class SumsOf>
  TANDEM_DEVICE void complete(const NormPlace& place, const SumsOf& sums_of) {
    for (int k = 0; k < pieces(); ++k) {
      const Range range = piece(k);
      Values residual;
      if (a_.residual != nullptr) residual = load(a_.residual + place.held * a_.hidden, range);
      Sums sums = sums_of(k, range);
      if (a_.bias != nullptr) sums = plus(sums, load(a_.bias, range));
      if (a_.residual != nullptr) sums = plus(sums, residual);
      Values values = sums.template convert<T>();
      if (a_.sum)
        for_pes(block_, place.sum_to_all,
                [&](int pe) { block_.store(a_.sum.on(pe) + place.held * a_.hidden, range, values); });
      keep(k, std::move(values));
    }
  }
  /// Takes a row that is complete.
  TANDEM_DEVICE void take(const T* row) {
    for (int k = 0; k < pieces(); ++k) keep(k, load(row, piece(k)));
  }

  TANDEM_DEVICE void finish(const NormPlace& place) {
    WholeRow whole;
    finish(place, whole);
  }
  /// Norms the row and writes the output. `join` returns sums and maxima of the row for pieces of this block.
  template <class Join>
  TANDEM_DEVICE void finish(const NormPlace& place, Join& join) {
    Values weight = first_weight();
    normalise(join);
    if constexpr (std::is_same_v<Q, fp8_e4m3>) {
      // One loop serves both passes, as in NormRow. The first pass finds the greatest value, the second one writes. The
      // loop has no break, since nvcc 13.0 ends with a segmentation fault in a third of its runs where it has one.
      float greatest = 0;
      float inverse = 1.0F / a_.scale;
      for (int pass = a_.quantisation == Quantisation::kRow ? 0 : 1; pass < 2; ++pass) {
        for_normed(weight, [&](Range range, const Sums& y) {
          if (pass == 0)
            greatest = apply(ReduceOp::kMax, greatest, join.greatest(block_, magnitudes(y)));
          else
            write_normed(
                block_, a_, place, range,
                a_.quantisation == Quantisation::kGroup ? scaled_by_groups(block_, a_, place, range, y) : y * inverse);
        });
        if (pass == 0) {
          if (kPieces > 1) weight = first_weight();
          inverse = 1.0F / write_row_scale(block_, a_, place, greatest, join.is_first());
        }
      }
    } else {
      for_normed(weight, [&](Range range, const Sums& y) { write_normed(block_, a_, place, range, y); });
    }
  }

 private:
  TANDEM_DEVICE static Sums plus(const Sums& x, const Values& y) { return x + y.template convert<float>(); }
  TANDEM_DEVICE Values load(const T* row, Range range) const { return block_.template load<T>(row, range); }
  TANDEM_DEVICE Values first_weight() const { return a_.norm == Norm::kNone ? Values() : load(a_.weight, piece(0)); }

  /// Keeps the values of piece k. Registers have names, not numbers.
  TANDEM_DEVICE void keep(int k, Values values) {
    if (kPieces == 1 || k == 0)
      first_ = std::move(values);
    else if (k == 1)
      second_ = std::move(values);
    else
      third_ = std::move(values);
  }
  TANDEM_DEVICE Values kept(int k) const {
    if (kPieces == 1 || k == 0) return first_.copy();
    return k == 1 ? second_.copy() : third_.copy();
  }

  template <class Join>
  TANDEM_DEVICE void normalise(Join& join) {
    if (a_.norm == Norm::kNone) return;
    const auto count = static_cast<float>(a_.hidden);
    mean_ = a_.norm == Norm::kLayer ? sum_of(join, [](float x) { return x; }) / count : 0;
    const float mean = mean_;
    const float squares = sum_of(join, [mean](float x) { return (x - mean) * (x - mean); });
    factor_ = 1.0F / sqrtf(squares / count + a_.epsilon);
  }
  template <class Join, class F>
  TANDEM_DEVICE float sum_of(Join& join, const F& f) const {
    float total = 0;
    for (int k = 0; k < pieces(); ++k) total += join.sum(block_, kept(k).template convert<float>().map(f));
    return total;
  }

  /// Calls f(range, normed values) for all pieces. `weight` is that of the first one; others are loaded one ahead.
  template <class F>
  TANDEM_DEVICE void for_normed(Values& weight, const F& f) const {
    const float mean = mean_;
    const float factor = factor_;
    for (int k = 0; k < pieces(); ++k) {
      const Range range = piece(k);
      Sums y = kept(k).template convert<float>();
      if (a_.norm != Norm::kNone) {
        y = y.zip(weight,
                  [mean, factor](float x, T of_weight) { return (x - mean) * factor * convert<float>(of_weight); });
        if (k + 1 < pieces()) weight = load(a_.weight, piece(k + 1));
        if (a_.norm_bias != nullptr) y = plus(y, load(a_.norm_bias, range));
      }
      f(range, y);
    }
  }

  Block& block_;
  const NormArgs<T, Q>& a_;
  Range part_;
  Size step_;                      // elements of a piece
  Values first_, second_, third_;  // the sums, rounded
  float mean_ = 0;
  float factor_ = 1;
};

}  // namespace tandem::kernels
