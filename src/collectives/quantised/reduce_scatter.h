#pragma once
/// Reduce-scatter of codes of 8 bits: every PE stores the codes of each part in its owner's staging. The owner decodes
/// and sums them.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1] in f32, rounded to T once. This PE's values go through codes, too, so
/// that the result does not depend on the owner. One step; for its two slots see all_gather.h. In-place allowed (out ==
/// in + pe * count): a PE has sent a chunk before it writes it.

#include "base/gpu_kernel.h"
#include "collectives/quantised/codes.h"

namespace tandem::kernels {

template <class T>
struct QuantisedReduceScatter {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    CodeStaging inputs;
    Epochs rounds;
    WireFormat wire = WireFormat::kFp8;
    Size count = 0;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.inputs = CodeStaging::of(setup, setup.max_count(), 2, "codes of inputs");
    a.rounds = setup.epochs();
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    run_code_rounds<QuantisedReduceScatter>(block, a, a.count);
  }

  template <class Code, class Block>
  TANDEM_DEVICE static void round(Block& block, const Args& a, Range chunk, Epoch round) {
    const CodePlace<Code> to = a.inputs.template place<Code>(block, round, block.pe());
    for (const int pe : block.pes_from_self()) send_codes(block, a.in.local() + pe * a.count, chunk, to, OnePe{pe});
    block.notify_all(a.inputs.arrived, round);
    block.wait_all(a.inputs.arrived, round);
    for (const Range tile : code_tiles<Code>(block, chunk.size()))
      block.store(a.out.local() + chunk.begin, tile, sum_codes<Code>(block, a.inputs, round, tile));
  }
};

TANDEM_GPU_KERNEL(QuantisedReduceScatter<float>, 512);
TANDEM_GPU_KERNEL(QuantisedReduceScatter<f16>, 512);
TANDEM_GPU_KERNEL(QuantisedReduceScatter<bf16>, 512);

}  // namespace tandem::kernels
