#pragma once
/// A kernel around the calls under test.

#include "tandem/range.h"

namespace tandem::test {

/// What stands before and after a call in its stream. Before: the input is put in place and the output overwritten, so
/// that a peer that read the one or wrote the other before the call would be found out. After: the result is saved and
/// the input overwritten, so that a peer that still wrote the one or read the other would be.
template <class T>
struct TwoCopies {
  struct Args {
    T* to;
    const T* from;
    Size count;
    T* second_to;
    const T* second_from;
    Size second_count;
    bool in_order;  // else side by side
  };

  template <class Block>
  static void run(Block& block, const Args& a) {
    if (block.index() == 0) block.copy(a.to, a.from, a.count);
    if (block.index() == (a.in_order ? 0 : 1)) block.copy(a.second_to, a.second_from, a.second_count);
  }
};

}  // namespace tandem::test
