#pragma once
/// What a kernel that is recorded writes down, and where: the raw material of timelines measured on GPUs.
///
/// Each block writes to an array of its own, in its GPU's memory: record 0 is the block's life, the others are its
/// operations, nearly in their order. Roles take slots of their own in turns, so that those of a role with fewer
/// operations than others are left as they were. A launch that is replayed (CUDA graphs) writes over its last records.

#include <cstdint>

namespace tandem::cuda {

enum class RecordKind : std::uint8_t {
  kBlock,
  kLoad,
  kStore,
  kCopy,
  kPut,
  kGet,
  kSignal,
  kSignalAll,  ///< the word at the same place on every PE of the team
  kWait,
  kTest,
  kFence,
  kQuiet,
  kAtomic,
  kSync,
  kPacketPut,
  kPacketGet,
  kCompute,  ///< a tile of a GEMM
  kEnd,      ///< no operation: the block waits for its roles, or a role for the others
};

/// 32 bytes: two 16-byte stores of one thread.
struct alignas(16) Record {
  std::uint64_t begin;     ///< nanoseconds of the GPU's timer
  std::uint32_t duration;  ///< nanoseconds, at most 2^32 - 1; 0 of loads and stores that go on until the next begins
  RecordKind kind;
  std::uint8_t role;    ///< 0: the block; else the role's number within `parallel`, from 1
  std::uint8_t detail;  ///< Cmp of a wait, SignalOp of a signal
  std::uint8_t count;   ///< words of a wait, at most 255
  /// What was read, waited for or written. kBlock: the SM.
  std::uint64_t address;
  /// Bytes, or the value of a signal or wait; packets: bytes, and the flag in the upper half. kBlock: how many
  /// operations there were, and in the upper half how many slots they took, as far as there was room.
  std::uint64_t payload;
};
static_assert(sizeof(Record) == 32);

/// Where the blocks of one launch write: block b to the `stride` records that begin at b * stride.
struct RecordArea {
  Record* records = nullptr;
  int stride = 0;
};

}  // namespace tandem::cuda
