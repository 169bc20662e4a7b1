#pragma once
/// Signals, epochs and packets: the words with which PEs notify each other that data has arrived.

#include <cstdint>

#include "tandem/symm.h"

namespace tandem {

/// The value of a signal: an epoch or a count that only grows, so that no signal is ever cleared (compared with >=).
using Epoch = std::uint64_t;

/// One signal word of 8 bytes. Only signal operations write it (OpenSHMEM 1.5 section 9.8: "signal data object").
struct Signal {
  Epoch value;  ///< only signal operations write it
};
/// Signal words of all PEs; `words + i` is the i-th word.
using Signals = Symm<Signal>;

/// The change that a signal makes to its word (OpenSHMEM 1.5 section 9.8.1, SHMEM_SIGNAL_SET and SHMEM_SIGNAL_ADD).
enum class SignalOp { kSet, kAdd };

/// Comparisons of `signal_wait_until` and `signal_test` (OpenSHMEM 1.5 section 9.10).
enum class Cmp { kEq, kNe, kGt, kGe, kLt, kLe };

/// Returns whether `value` and `to` compare true.
TANDEM_DEVICE constexpr bool compare(Epoch value, Cmp cmp, Epoch to) {
  switch (cmp) {
    case Cmp::kEq:
      return value == to;
    case Cmp::kNe:
      return value != to;
    case Cmp::kGt:
      return value > to;
    case Cmp::kGe:
      return value >= to;
    case Cmp::kLt:
      return value < to;
    case Cmp::kLe:
      return value <= to;
  }
  return false;
}

/// The threads among which an atomic is ordered (PTX ISA, "Scope": .cta, .gpu, .sys).
enum class Scope { kBlock, kGpu, kSystem };
/// The order that an atomic gives (PTX ISA, "Memory consistency model": .relaxed, .acquire, .release, .acq_rel).
enum class Order { kRelaxed, kAcquire, kRelease, kAcqRel };

/// A count or a place on which the time of a kernel depends. Memory of this type (SymmetricHeap::allocate_local) and
/// packets that carry it have contents in phantom simulations, too.
enum class Index : std::int32_t {};

/// The epoch counters of one operator instance: local memory with one word for each block of its largest grid. They
/// live on the device, so that a replayed graph never sends a stale epoch.
struct Epochs {
  Epoch* words = nullptr;  ///< [block]: the last epoch that the block has taken
};

/// Proof that a wait returned. Reads through `consume_token(pointer, token)` are ordered after that wait.
struct Token {};

/// LL packet: 4 bytes of data and a 4-byte flag, written and read as one 8-byte access. The data thus carries its own
/// signal.
struct alignas(8) LLPacket {
  std::uint32_t data;  ///< 4 bytes
  std::uint32_t flag;  ///< the lower half of the epoch
};

/// Packets of each block that takes part in sum_of_parts: a line of 128 bytes.
inline constexpr int kPartPackets = 16;

/// LL128 line: 112 bytes of data and an 8-byte flag. Each of eight threads has 16 bytes; the last one's hold the flag.
/// It needs 128-byte stores of a warp that become visible as a whole, which no document promises. An architecture gets
/// it once a litmus test has run there (tests/gpu/memory/litmus_gpu_check.cpp; sm_90 has passed it).
struct alignas(16) LL128Line {
  std::uint32_t data[28];  ///< 112 bytes
  std::uint64_t unused;    ///< fills the line
  std::uint64_t flag;      ///< the epoch
};

/// Returns the number of packets (of type P) that carry `bytes` bytes.
template <class P>
TANDEM_DEVICE constexpr Size packets_for(Size bytes) {
  return ceil_div(bytes, static_cast<Size>(sizeof(P::data)));
}

}  // namespace tandem
