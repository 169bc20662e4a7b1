#pragma once
/// ncclRedOpCreatePreMulSum: each rank's input times a scalar of its own.

#include <array>
#include <cstddef>
#include <vector>

#include "tandem/numeric.h"

namespace tandem::nccl {

/// A scalar of type `type`.
struct Scalar {
  DType type = DType::kF32;
  std::array<std::byte, 8> value{};
  /// Where the scalar is read when a call runs; null: `value` holds it.
  const void* place = nullptr;
};

/// Returns `count` elements at `in`, each multiplied and rounded to its type, as ReduceOp::kPremulSum defines it. All
/// of it is memory of the host.
std::vector<std::byte> premultiplied(const Scalar& scalar, const void* in, Size count);

}  // namespace tandem::nccl
