#pragma once
/// The properties of each collective: sizes, places and sources of its elements. Plans, the tool's data and the tests
/// all read them here. The table is in src/collectives/plan/registry.cpp.
///
///   for (const Collective one : all_collectives())
///     if (traits(one).has_place) std::cout << name(one) << " may be in place\n";

#include <span>

#include "tandem/collectives.h"

namespace tandem {

/// The numbers of a call on which sizes and sources depend.
struct CollectiveShape {
  Size count = 0;  ///< as in the table of tandem/collectives.h
  int pes = 1;     ///< PEs of the team
  int root = 0;    ///< the root, where the collective has one
};

/// The inputs that make an element of an output. A collective that moves elements has one PE; the others reduce.
struct CollectiveSource {
  int first = 0;   ///< the first PE
  int pes = 1;     ///< the number of consecutive PEs
  Size index = 0;  ///< the element of each PE's input
};

/// One buffer of a call.
struct CollectiveBuffer {
  bool is_whole = false;  ///< whether it has n * count elements, and not count
  bool at_root = false;   ///< whether only the root has it
};

/// The positions of input and output in the common buffer of a call in place, in elements.
struct CollectivePlaces {
  Size in = 0;   ///< of the input
  Size out = 0;  ///< of the output
};

/// The properties of a collective.
struct CollectiveTraits {
  Collective collective;  ///< the collective
  const char* name;       ///< its name, such as "all_reduce"
  bool reduces;           ///< whether it combines values
  CollectiveBuffer in;    ///< the input
  CollectiveBuffer out;   ///< the output
  bool has_place;         ///< whether a call may be in place
  /// Returns the inputs that make element `i` of the output of PE `pe`. The elements of a chunk of `count` elements
  /// have the same PEs and consecutive indices.
  CollectiveSource (*source)(const CollectiveShape& call, int pe, Size i);

  /// Returns whether a call has a root.
  constexpr bool has_root() const { return in.at_root || out.at_root; }
  /// Returns whether the larger buffer has n * count elements.
  constexpr bool is_whole() const { return in.is_whole || out.is_whole; }
  /// Returns whether in a call in place only the root's buffers share memory, since the other PEs have one buffer.
  constexpr bool has_place_at_root_only() const { return has_root() && is_whole(); }
  /// Returns the positions in a call in place on PE `pe`.
  constexpr CollectivePlaces places(Size count, int pe, int root) const {
    const Size own = (has_root() ? root : pe) * count;
    return {out.is_whole && !in.is_whole ? own : 0, in.is_whole && !out.is_whole ? own : 0};
  }
};

/// Returns all collectives, in the order of the enumeration.
std::span<const Collective> all_collectives();
/// Returns the properties of a collective. Throws InvalidArgument for a number that is none.
const CollectiveTraits& traits(Collective collective);

}  // namespace tandem
