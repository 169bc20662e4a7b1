#pragma once
/// Buffers of calls in place.

#include "tandem/advanced/collective_traits.h"
#include "tandem/world.h"

namespace tandem::test {

/// Returns whether input and output of PE `pe` share memory in a call in place.
inline bool shares_memory(Collective collective, int pe, int root) {
  return !traits(collective).has_place_at_root_only() || pe == root;
}

/// Moves `in` and `out`, which are buffers of their own, to their places in one of them. Peers access the root's, so
/// all PEs have the same handle there.
template <class T>
void put_in_place(Collective collective, Size count, int pe, int root, Symm<T>& in, Symm<T>& out) {
  const CollectivePlaces at = traits(collective).places(count, pe, root);
  const Symm<T> both = traits(collective).out.at_root ? out : in;
  in = both + at.in;
  out = both + at.out;
}

}  // namespace tandem::test
