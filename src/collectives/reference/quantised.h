#pragma once
/// Exact results of collectives with codes of 8 bits on the wire, computed without the kernels' code.

#include <functional>
#include <vector>

#include "tandem/collectives.h"

namespace tandem::kernels {

/// A call, and element `index` of the input of a PE.
struct QuantisedCall {
  Collective collective = Collective::kAllReduce;
  WireFormat wire = WireFormat::kFp8;
  int pes = 1;
  Size count = 0;
  std::function<float(int pe, Size index)> input;
};

/// Elements that share a scale.
inline constexpr Size kWireGroup = 128;

/// Replaces a group's values by those that arrive. Returns the bound of the error of each, relative to exact
/// arithmetic; NaN if the group became NaN.
std::vector<double> pass_through_wire(WireFormat wire, std::vector<float>& values);

/// A group of the output of a PE, before it is rounded to the element type.
struct QuantisedGroup {
  std::vector<float> values;
  std::vector<double> exact;   ///< the sums, or the elements, of exact arithmetic
  std::vector<double> bounds;  ///< of the distance to `exact`
};
/// Returns the elements from `first` on, a multiple of kWireGroup within one part of the output of `pe`.
QuantisedGroup quantised_group(const QuantisedCall& call, int pe, Size first);

}  // namespace tandem::kernels
