#pragma once
/// All-reduce of codes of 8 bits in two shots: the owner of a shard sums it, and sends codes of the sums to all PEs.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1] in f32. The sum goes through codes, too, and is then rounded to T once,
/// so all PEs get the same bits. Shards are whole groups. One slot each suffices. A PE sends the next round's inputs
/// when it has all sums, whose owners had then read all inputs. It sends sums when it has all inputs, whose senders had
/// then read the sums of the round before. In-place allowed: a PE has sent a chunk before it writes it.

#include "base/gpu_kernel.h"
#include "collectives/quantised/codes.h"

namespace tandem::kernels {

template <class T>
struct QuantisedAllReduce {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    CodeStaging inputs;
    CodeStaging sums;
    Epochs rounds;
    WireFormat wire = WireFormat::kFp8;
    Size count = 0;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    const Size shard = shard_of(setup.max_count(), setup.pes());
    a.inputs = CodeStaging::of(setup, shard, 1, "codes of inputs");
    a.sums = CodeStaging::of(setup, shard, 1, "codes of sums");
    a.rounds = setup.epochs();
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    run_code_rounds<QuantisedAllReduce>(block, a, shard_of(a.count, block.num_pes()));
  }

  template <class Code, class Block>
  TANDEM_DEVICE static void round(Block& block, const Args& a, Range chunk, Epoch round) {
    const int me = block.pe();
    const Size shard = shard_of(a.count, block.num_pes());
    const auto elements = [&](int pe) {
      return Range{min(pe * shard + chunk.begin, a.count), min(pe * shard + chunk.end, a.count)};
    };

    const CodePlace<Code> own_inputs = a.inputs.template place<Code>(block, round, me);
    for (const int pe : block.pes_from_self()) send_codes(block, a.in.local(), elements(pe), own_inputs, OnePe{pe});
    block.notify_all(a.inputs.arrived, round);
    block.wait_all(a.inputs.arrived, round);

    const CodePlace<Code> own_sums = a.sums.template place<Code>(block, round, me);
    for (const Range tile : code_tiles<Code>(block, elements(me).size()))
      store_codes(block, sum_codes<Code>(block, a.inputs, round, tile), own_sums, tile.begin, block.pes_from_self());
    block.notify_all(a.sums.arrived, round);
    block.wait_all(a.sums.arrived, round);

    for (const int pe : block.pes_from_self()) {
      const CodePlace<Code> from = a.sums.template place<Code>(block, round, pe);
      for (const Range tile : code_tiles<Code>(block, elements(pe).size()))
        block.store(a.out.local() + elements(pe).begin, tile, load_codes(block, from, tile));
    }
  }

 private:
  TANDEM_DEVICE static Size shard_of(Size count, int pes) { return round_up(ceil_div(count, pes), kScaleGroup); }
};

TANDEM_GPU_KERNEL(QuantisedAllReduce<float>, 512);
TANDEM_GPU_KERNEL(QuantisedAllReduce<f16>, 512);
TANDEM_GPU_KERNEL(QuantisedAllReduce<bf16>, 512);

}  // namespace tandem::kernels
