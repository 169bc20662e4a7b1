#pragma once
/// The products of kPremulSum, for a factor that is known when the kernel runs.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

/// Multiplies the elements of one or several parts, of which each begins `pitch` elements behind the one before.
template <class T>
struct Premultiply {
  struct Args {
    const T* in;
    T* out;
    Size in_pitch;
    Size out_pitch;
    Size parts;
    Size count;         // elements of each part
    const T* scale_at;  // null: `scale`
    T scale;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range range = split(a.count, block.count(), 16)[block.index()];
    const T factor = a.scale_at != nullptr ? block.load_scalar(a.scale_at) : a.scale;
    const auto scale = convert<Accumulator<T>>(factor);
    for (Size i = 0; i < a.parts; ++i)
      copy_input<T>(block, a.out + i * a.out_pitch, a.in + i * a.in_pitch, range, ReduceOp::kPremulSum, scale);
  }
};

TANDEM_GPU_KERNELS(Premultiply, 512);

}  // namespace tandem::kernels
