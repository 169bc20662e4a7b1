#pragma once
/// Test data of collectives: inputs and expected outputs.

#include <functional>
#include <memory>
#include <vector>

#include "tandem/advanced/collective_traits.h"
#include "tools/tandem/run/result.h"

namespace tandem::cli {

/// The kind of data for a reduction.
enum class DataKind {
  kExact,   ///< exact in any order of the reduction, so every bit is known
  kNormal,  ///< random normal, compared within a tolerance
};

/// The properties of a collective's call on which its data depends.
struct CollectiveCall {
  Collective collective = Collective::kAllReduce;
  DType type = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  Size count = 0;
  int pes = 1;
  int root = 0;
  std::uint64_t seed = 1;
  DataKind data = DataKind::kExact;
  WireFormat wire = WireFormat::kType;  ///< with another one, values are random normal and checked bit for bit
};

/// The data of one call: inputs and expectations, element by element.
class CollectiveData {
 public:
  virtual ~CollectiveData() = default;
  /// Returns the factor of the values of `pe` for ReduceOp::kPremulSum.
  virtual double scale(int pe) const { return 1 + pe % 2; }
  virtual void fill_input(int pe, std::byte* in) const = 0;
  /// Compares the elements `part` of the output of `pe`, which are at `out`, on several threads. Adds the result to
  /// `check`.
  virtual void check_part(int pe, Range part, const std::byte* out, Check& check) const = 0;
  /// Compares the whole output.
  void check_output(int pe, const std::byte* out, Check& check) const {
    check_part(pe, {0, output_elements(call_.collective, call_.count, call_.pes, pe, call_.root)}, out, check);
  }

 protected:
  explicit CollectiveData(const CollectiveCall& call) : call_(call) {}

  /// Returns the inputs that make element `i` of the output of `pe`.
  CollectiveSource source_of(int pe, Size i) const {
    return traits(call_.collective).source({call_.count, call_.pes, call_.root}, pe, i);
  }

  const CollectiveCall call_;  // NOLINT(misc-non-private-member-variables-in-classes): of all kinds of data
};

/// Throws InvalidArgument for random normal data of an integer type or of a collective that does not reduce.
std::unique_ptr<CollectiveData> make_collective_data(const CollectiveCall& call);

}  // namespace tandem::cli
