#pragma once
/// Several chunks to one PE, counted by one word.

#include "tandem/signal.h"
#include "tandem/symm.h"

namespace tandem::kernels {

/// Puts this PE's elements `range` of `to` to PE `pe`'s copy and sets `word` there to `count`. The signal comes after
/// everything that this block put to that PE before; a plain put_signal follows its own data only.
template <class T, class Block>
TANDEM_DEVICE void put_counted(Block& block, Symm<T> to, const T* from, Range range, Signals word, Epoch count,
                               int pe) {
  if (block.reachable(pe)) {
    block.put_nbi(to + range.begin, from + range.begin, range.size(), pe);
    block.notify(word, count, pe);
  } else {
    block.fence();
    block.put_signal_nbi(to + range.begin, from + range.begin, range.size(), word, count, pe);
  }
}

}  // namespace tandem::kernels
