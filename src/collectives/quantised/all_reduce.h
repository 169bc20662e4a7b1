#pragma once
/// All-reduce of codes of 8 bits in two shots: the owner of a shard sums it, and sends codes of the sums to all PEs.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1] in f32. The sum goes through codes, too, and is then rounded to T once,
/// so all PEs get the same bits. Shards are whole groups.
///
/// Rounds overlap: inputs of two later rounds are on their way while a round is summed, and its sums arrive while the
/// next one is. Three slots suffice. A PE sends the inputs of round r + 3 when it has all sums of round r, whose owners
/// had then read its inputs. It sends the sums of round r + 3 when it has all inputs of that round, whose senders had
/// then read the sums of round r. In-place allowed: a PE has sent a chunk before it writes it.

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
    a.inputs = CodeStaging::of(setup, shard, kSlots, "codes of inputs", kMostOfRound);
    a.sums = CodeStaging::of(setup, shard, kSlots, "codes of sums", kMostOfRound);
    a.rounds = setup.epochs();
    return a;
  }

  /// A block converts at less than the link's rate, so all SMs take part.
  static int suitable_blocks(const Team&, int blocks) { return 8 * blocks; }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    if (a.wire == WireFormat::kInt8)
      run_rounds<std::int8_t>(block, a);
    else
      run_rounds<fp8_e4m3>(block, a);
  }

 private:
  static constexpr int kSlots = 3;
  static constexpr int kAhead = kSlots - 1;             // rounds whose inputs are on their way
  static constexpr Size kMostOfRound = Size{16} << 10;  // elements from one PE to another

  TANDEM_DEVICE static Size shard_of(Size count, int pes) { return round_up(ceil_div(count, pes), kScaleGroup); }

  template <class Code, class Block>
  TANDEM_DEVICE static void run_rounds(Block& block, const Args& a) {
    const CodeRounds rounds(block, a.rounds, shard_of(a.count, block.num_pes()), a.inputs.each, true);
    // One loop holds each step once: kernels of more code wait for their instructions.
    for (Size i = -kAhead; i <= rounds.count(); ++i) {
      if (i >= 0 && i < rounds.count()) send_sums<Code>(block, a, rounds, i);
      if (i > 0) take_sums<Code>(block, a, rounds, i - 1);
      send_inputs<Code>(block, a, rounds, i + kAhead);
    }
  }

  /// Returns a round's elements of the shard of `pe`.
  template <class Block>
  TANDEM_DEVICE static Range elements(const Block& block, const Args& a, Range chunk, int pe) {
    const Size begin = pe * shard_of(a.count, block.num_pes());
    return {min(begin + chunk.begin, a.count), min(begin + chunk.end, a.count)};
  }

  template <class Code, class Block>
  TANDEM_DEVICE static void send_inputs(Block& block, const Args& a, const CodeRounds& rounds, Size i) {
    if (i >= rounds.count()) return;
    const CodePlace<Code> own = a.inputs.template place<Code>(block, rounds.number(i), block.pe());
    // Half of the blocks begin with their own shard, so that links and SMs are busy at the same time.
    const int first = block.index() % 2 == 0 ? 0 : 1;
    const int pes = block.num_pes();
    for (int k = first; k < first + pes; ++k) {
      if (k == pes) block.notify_all(a.inputs.arrived, rounds.number(i));
      const int pe = (block.pe() + k) % pes;
      send_codes(block, a.in.local(), elements(block, a, rounds.chunk(i), pe), own, OnePe{pe});
    }
    if (first == 0) block.notify_all(a.inputs.arrived, rounds.number(i));
  }

  template <class Code, class Block>
  TANDEM_DEVICE static void send_sums(Block& block, const Args& a, const CodeRounds& rounds, Size i) {
    const Epoch round = rounds.number(i);
    block.wait_all(a.inputs.arrived, round);
    const CodePlace<Code> own = a.sums.template place<Code>(block, round, block.pe());
    const Range to = elements(block, a, rounds.chunk(i), block.pe());
    for (const Range tile : code_tiles<Code>(block, to.size())) {
      const auto sum = sum_codes<Code>(block, a.inputs, round, tile);
      block.store(a.out.local() + to.begin, tile, store_codes(block, sum, own, tile.begin, block.peers_from_self()));
    }
    block.notify_all(a.sums.arrived, round);
  }

  template <class Code, class Block>
  TANDEM_DEVICE static void take_sums(Block& block, const Args& a, const CodeRounds& rounds, Size i) {
    const Epoch round = rounds.number(i);
    block.wait_all(a.sums.arrived, round);
    for (const int pe : block.peers_from_self()) {
      const CodePlace<Code> from = a.sums.template place<Code>(block, round, pe);
      const Range to = elements(block, a, rounds.chunk(i), pe);
      for (const Range tile : code_tiles<Code>(block, to.size()))
        block.store(a.out.local() + to.begin, tile, load_codes(block, from, tile));
    }
  }
};

TANDEM_GPU_KERNEL(QuantisedAllReduce<float>, 512);
TANDEM_GPU_KERNEL(QuantisedAllReduce<f16>, 512);
TANDEM_GPU_KERNEL(QuantisedAllReduce<bf16>, 512);

}  // namespace tandem::kernels
