#pragma once
/// Operations of every backend's block that are composed of others, and results of several numbers.

#include "tandem/signal.h"

namespace tandem {

/// Returns the number of the lowest bit of a word that is not 0.
TANDEM_DEVICE inline int lowest_bit(std::uint32_t word) {
#ifdef __CUDA_ARCH__
  return __ffs(static_cast<int>(word)) - 1;
#else
  return __builtin_ctz(word);
#endif
}

/// The results of key_ranks.
template <class Fragment>
struct KeyRanks {
  Fragment ranks;   ///< of each element: the earlier elements with its key; 0 for elements without a key
  Fragment counts;  ///< [keys]: the elements with each key
};

/// The PEs of a team in ring order from one of them: `for (int pe : block.pes_from_self())`.
class PeCycle {
 public:
  class Iterator {
   public:
    /// A comparison replaces the remainder, which costs a tenth of a microsecond on a GPU.
    TANDEM_DEVICE Iterator(int first, int size, int step)
        : pe_(first + step < size ? first + step : first + step - size), size_(size), step_(step) {}
    TANDEM_DEVICE int operator*() const { return pe_; }
    TANDEM_DEVICE Iterator& operator++() {
      ++step_;
      pe_ = pe_ + 1 < size_ ? pe_ + 1 : 0;
      return *this;
    }
    TANDEM_DEVICE bool operator!=(const Iterator& other) const { return step_ != other.step_; }

   private:
    int pe_;
    int size_;
    int step_;
  };

  TANDEM_DEVICE PeCycle(int first, int size, int from_step) : first_(first), size_(size), from_(from_step) {}
  TANDEM_DEVICE Iterator begin() const { return {first_, size_, from_}; }
  TANDEM_DEVICE Iterator end() const { return {first_, size_, size_}; }

 private:
  int first_;
  int size_;
  int from_;
};

/// The steps of a loop over `range`, each of at most `step` elements.
class Tiles {
 public:
  class Iterator {
   public:
    TANDEM_DEVICE Iterator(Size at, const Tiles& tiles) : at_(at), end_(tiles.range_.end), step_(tiles.step_) {}
    TANDEM_DEVICE Range operator*() const { return {at_, min(at_ + step_, end_)}; }
    TANDEM_DEVICE Iterator& operator++() {
      at_ = min(at_ + step_, end_);
      return *this;
    }
    TANDEM_DEVICE bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    Size at_;
    Size end_;
    Size step_;
  };

  TANDEM_DEVICE Tiles(Range range, Size step) : range_(range), step_(step) {
    if (range_.empty()) range_.end = range_.begin;
  }
  TANDEM_DEVICE Iterator begin() const { return {range_.begin, *this}; }
  TANDEM_DEVICE Iterator end() const { return {range_.end, *this}; }

 private:
  Range range_;
  Size step_;
};

/// A base class of each backend's block (`Self`).
template <class Self>
class BlockOps {
 public:
  /// All PEs of the team, this one first.
  TANDEM_DEVICE PeCycle pes_from_self() const { return {self().pe(), self().num_pes(), 0}; }
  /// All PEs of the team but this one, the next one first: no two PEs address the same peer at the same step.
  TANDEM_DEVICE PeCycle peers_from_self() const { return {self().pe(), self().num_pes(), 1}; }

  /// This block's slots in an array of signals with one slot for each block and PE.
  TANDEM_DEVICE Signals slots(Signals words) const { return words + Size{self().index()} * self().num_pes(); }

 private:
  TANDEM_DEVICE const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace tandem
