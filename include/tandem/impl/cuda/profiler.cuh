#pragma once
/// The writer of records: one warp of a block or role.

#include "tandem/impl/cuda/ptx.cuh"
#include "tandem/impl/cuda/record.h"
#include "tandem/range.h"

namespace tandem::cuda {

/// The data of an operation's record.
struct Subject {
  RecordKind kind;
  const void* address = nullptr;
  std::uint64_t units = 0;  ///< payload in units of `unit`; only the recording warp multiplies
  unsigned detail = 0;
  Size count = 0;
  unsigned unit = 1;
};

/// The slots of a block's operations in its records.
struct RecordSlots {
  Record* first;
  unsigned room;
};

// The following code is a jump in all warps but the recording one, where `off` is 0. `off` is the same in all threads
// of a warp. The jumps and the recording warp's computations are written in assembler. A branch of the compiler would
// have a reconvergence point of the warp's threads after it, which restricts scheduling.

/// Reads the timer once `value` is known, in a warp that records. Elsewhere the result is undefined.
__device__ inline std::uint64_t timer_after(unsigned off, std::uint32_t value) {
  std::uint64_t ns;
  asm volatile(
      "{\n\t"
      ".reg .pred other, unlikely;\n\t"
      "setp.ne.u32 other, %1, 0;\n\t"
      "@other bra.uni DONE;\n\t"
      "setp.eq.u32 unlikely, %2, 0x7fb7fb7f;\n\t"  // an instruction that cannot be left out waits for it
      "@unlikely nanosleep.u32 1;\n\t"
      "mov.u64 %0, %globaltimer;\n"
      "DONE:\n\t"
      "}"
      : "=l"(ns)
      : "r"(off), "r"(value)
      : "memory");
  return ns;
}

/// Writes an operation that began at `begin` and ends now.
__device__ inline void write_record(unsigned off, const RecordSlots& slots, unsigned slot, std::uint32_t kinds,
                                    const Subject& subject, std::uint64_t begin) {
  asm volatile(
      "{\n\t"
      ".reg .pred other, writes;\n\t"
      ".reg .u32 low, high, ns, lane;\n\t"
      ".reg .u64 duration, payload, to;\n\t"
      "setp.ne.u32 other, %0, 0;\n\t"
      "@other bra.uni DONE;\n\t"
      "mov.u64 duration, %globaltimer;\n\t"
      "sub.u64 duration, duration, %4;\n\t"
      "min.u64 duration, duration, 0xffffffff;\n\t"
      "cvt.u32.u64 ns, duration;\n\t"
      "mov.b64 {low, high}, %4;\n\t"
      "cvt.u64.u32 payload, %8;\n\t"
      "mul.lo.u64 payload, payload, %7;\n\t"
      "mad.wide.u32 to, %2, 32, %1;\n\t"
      "mov.u32 lane, %laneid;\n\t"
      "setp.eq.u32 writes, lane, 0;\n\t"
      "setp.lt.and.u32 writes, %2, %3, writes;\n\t"
      "@writes st.global.v4.u32 [to], {low, high, ns, %5};\n\t"
      "@writes st.global.v2.u64 [to + 16], {%6, payload};\n"
      "DONE:\n\t"
      "}" ::"r"(off),
      "l"(slots.first), "r"(slot), "r"(slots.room), "l"(begin), "r"(kinds), "l"(subject.address), "l"(subject.units),
      "r"(subject.unit));
}

/// Writes an operation that begins once `value` is known and lasts until the next one begins.
__device__ inline void write_begin(unsigned off, std::uint32_t value, const RecordSlots& slots, unsigned slot,
                                   std::uint32_t kinds, const Subject& subject) {
  asm volatile(
      "{\n\t"
      ".reg .pred other, unlikely, writes;\n\t"
      ".reg .u32 low, high, lane;\n\t"
      ".reg .u64 begin, payload, to;\n\t"
      "setp.ne.u32 other, %0, 0;\n\t"
      "@other bra.uni DONE;\n\t"
      "cvt.u64.u32 payload, %7;\n\t"
      "mul.lo.u64 payload, payload, %6;\n\t"
      "mad.wide.u32 to, %2, 32, %1;\n\t"
      "mov.u32 lane, %laneid;\n\t"
      "setp.eq.u32 writes, lane, 0;\n\t"
      "setp.lt.and.u32 writes, %2, %3, writes;\n\t"
      "setp.eq.u32 unlikely, %8, 0x7fb7fb7f;\n\t"  // as above
      "@unlikely nanosleep.u32 1;\n\t"
      "mov.u64 begin, %globaltimer;\n\t"
      "mov.b64 {low, high}, begin;\n\t"
      "@writes st.global.v4.u32 [to], {low, high, 0, %4};\n\t"
      "@writes st.global.v2.u64 [to + 16], {%5, payload};\n"
      "DONE:\n\t"
      "}" ::"r"(off),
      "l"(slots.first), "r"(slot), "r"(slots.room), "r"(kinds), "l"(subject.address), "l"(subject.units),
      "r"(subject.unit), "r"(value)
      : "memory");
}

/// A block's progress in its slots, which roles exchange in shared memory.
struct RecordCount {
  unsigned slots;       ///< slots that were used, or skipped by roles with fewer operations than others
  unsigned operations;  ///< operations, recorded or not
};

/// A block's place in its records.
class Profiler {
 public:
  __device__ Profiler(const RecordArea& area, RecordCount* shared)
      : block_(area.records + static_cast<Size>(blockIdx.x) * area.stride),
        slots_{block_ + 1, static_cast<unsigned>(area.stride) - 1},
        shared_(shared) {}

  /// Writes an operation in slot `slot`, from `begin` to now, in the warp with `off` 0.
  __device__ void add(unsigned off, unsigned slot, int role, const Subject& subject, std::uint64_t begin) const {
    write_record(off, slots_, slot, kinds(role, subject), subject, begin);
  }
  /// Writes an operation that begins once `value` is known.
  __device__ void add_begin(unsigned off, std::uint32_t value, unsigned slot, int role, const Subject& subject) const {
    write_begin(off, value, slots_, slot, kinds(role, subject), subject);
  }
  /// Called by one thread of a warp, for the block's next slot. Roles that count like this start their count with
  /// `lend`.
  __device__ void add_next(int role, const Subject& subject, std::uint64_t begin) const {
    const unsigned slot = atomicAdd_block(&shared_->slots, 1U);
    if (slot < slots_.room) {
      const auto ns = min(global_timer() - begin, std::uint64_t{0xFFFF'FFFF});
      slots_.first[slot] = {begin,
                            static_cast<std::uint32_t>(ns),
                            subject.kind,
                            static_cast<std::uint8_t>(role),
                            static_cast<std::uint8_t>(subject.detail),
                            static_cast<std::uint8_t>(min(subject.count, kMostWords)),
                            reinterpret_cast<std::uint64_t>(subject.address),
                            subject.units * subject.unit};
    }
  }

  /// Called by one thread around the time in which roles record, with barriers of the block in between. The three give
  /// the start of the roles' slots, the slots that each role added, and the block's progress afterwards.
  __device__ void lend(unsigned slots) const { *shared_ = {slots, 0}; }
  __device__ void add_role(unsigned slots, unsigned operations) const {
    atomicMax_block(&shared_->slots, slots);
    atomicAdd_block(&shared_->operations, operations);
  }
  __device__ RecordCount take_back() const {
    const volatile RecordCount* const shared = shared_;
    return {shared->slots, shared->operations};
  }

  /// Writes the block's life at its end.
  __device__ void finish(std::uint64_t begin, const RecordCount& count) const {
    unsigned sm = 0;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    const auto ns = min(global_timer() - begin, std::uint64_t{0xFFFF'FFFF});
    const auto counts = static_cast<std::uint64_t>(count.slots) << 32 | count.operations;
    *block_ = {begin, static_cast<std::uint32_t>(ns), RecordKind::kBlock, 0, 0, 0, sm, counts};
  }

 private:
  static constexpr Size kMostWords = 255;

  __device__ static std::uint32_t kinds(int role, const Subject& subject) {
    return static_cast<std::uint32_t>(subject.kind) | static_cast<std::uint32_t>(role) << 8 | subject.detail << 16 |
           static_cast<std::uint32_t>(min(subject.count, kMostWords)) << 24;
  }

  Record* const block_;
  const RecordSlots slots_;
  RecordCount* const shared_;
};

}  // namespace tandem::cuda
