#pragma once
/// All-gather of codes of 8 bits: every PE stores its codes and scales in the staging of all PEs, which decode them.
///
/// One step, and no PE accesses a peer's buffers. Two slots suffice: a PE sends round r when it has all codes of round
/// r - 1, whose senders had then read round r - 2. In-place allowed (in == out + pe * count).

#include "base/gpu_kernel.h"
#include "collectives/quantised/codes.h"

namespace tandem::kernels {

template <class T>
struct QuantisedAllGather {
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
    run_code_rounds<QuantisedAllGather>(block, a, a.count);
  }

  template <class Code, class Block>
  TANDEM_DEVICE static void round(Block& block, const Args& a, Range chunk, Epoch round) {
    send_codes(block, a.in.local(), chunk, a.inputs.template place<Code>(block, round, block.pe()),
               block.pes_from_self());
    block.notify_all(a.inputs.arrived, round);
    block.wait_all(a.inputs.arrived, round);
    for (const int pe : block.pes_from_self()) {
      const CodePlace<Code> from = a.inputs.template place<Code>(block, round, pe);
      T* const to = a.out.local() + pe * a.count + chunk.begin;
      for (const Range tile : code_tiles<Code>(block, chunk.size()))
        block.store(to, tile, load_codes(block, from, tile));
    }
  }
};

TANDEM_GPU_KERNEL(QuantisedAllGather<float>, 512);
TANDEM_GPU_KERNEL(QuantisedAllGather<f16>, 512);
TANDEM_GPU_KERNEL(QuantisedAllGather<bf16>, 512);

}  // namespace tandem::kernels
