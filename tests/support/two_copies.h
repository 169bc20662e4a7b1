#pragma once
/// A kernel around the calls under test.

#include "tandem/range.h"

namespace tandem::test {

/// The work before and after a call in its stream. Before the call the input is set and the output overwritten. A peer
/// that read the input or wrote the output too early would be found. After the call the result is saved and the input
/// overwritten. A peer that wrote or read too late would be found.
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
