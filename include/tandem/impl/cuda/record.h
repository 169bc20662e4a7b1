#pragma once
/// The records of a kernel and their place: the input of timelines measured on GPUs.
///
/// Each block writes to its own array in its GPU's memory. Record 0 is the block's life; the others are its operations,
/// nearly in their order. Roles take slots cyclically, so slots of a role with fewer operations than others stay
/// unused. A replayed launch (CUDA graphs) overwrites its last records.

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
  std::uint32_t duration;  ///< nanoseconds, at most 2^32 - 1; 0 for loads and stores that last until the next operation
  RecordKind kind;
  std::uint8_t role;    ///< 0: the block; else the role's number within `parallel`, from 1
  std::uint8_t detail;  ///< Cmp of a wait, SignalOp of a signal
  std::uint8_t count;   ///< words of a wait, at most 255
  /// The address that was read, awaited or written. kBlock: the SM.
  std::uint64_t address;
  /// Bytes, or the value of a signal or wait. For packets the upper half is the flag. For kBlock it is the number of
  /// operations, with the number of their slots in the upper half.
  std::uint64_t payload;
};
static_assert(sizeof(Record) == 32);

/// The records of one launch: block b writes to the `stride` records that start at b * stride.
struct RecordArea {
  Record* records = nullptr;
  int stride = 0;
};

}  // namespace tandem::cuda
