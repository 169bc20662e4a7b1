#pragma once
/// Writes records: one thread of a block or role does.

#include "tandem/impl/cuda/ptx.cuh"
#include "tandem/impl/cuda/record.h"

namespace tandem::cuda {

/// What an operation says of itself.
struct Subject {
  RecordKind kind;
  const void* address = nullptr;
  std::uint64_t payload = 0;
  unsigned detail = 0;
  Size count = 0;
};

/// The timer, read only after `value` is known: an instruction that the assembler cannot leave out waits for it.
__device__ inline std::uint64_t timer_after(std::uint32_t value) {
  std::uint64_t ns;
  asm volatile(
      "{\n\t"
      ".reg .pred unlikely;\n\t"
      "setp.eq.u32 unlikely, %1, 0x7fb7fb7f;\n\t"
      "@unlikely nanosleep.u32 1;\n\t"
      "mov.u64 %0, %globaltimer;\n\t"
      "}"
      : "=l"(ns)
      : "r"(value)
      : "memory");
  return ns;
}

/// A block's place in its records; roles share it, by an atomic in shared memory.
class Recorder {
 public:
  __device__ Recorder(const RecordArea& area, unsigned* shared_count)
      : records_(area.records + static_cast<Size>(blockIdx.x) * area.stride),
        room_(static_cast<unsigned>(area.stride) - 1),
        shared_count_(shared_count) {}

  /// By the one thread that records for the block.
  __device__ void add(const Subject& subject, std::uint64_t begin, std::uint64_t end) {
    write(count_++, 0, subject, begin, end);
  }
  /// By the one thread that records for role `role`.
  __device__ void add_from_role(int role, const Subject& subject, std::uint64_t begin, std::uint64_t end) {
    write(atomicAdd_block(shared_count_, 1U), role, subject, begin, end);
  }

  /// Around the time in which roles record; by the block's recording thread, with barriers of the block in between.
  __device__ void lend() { *shared_count_ = count_; }
  __device__ void take_back() { count_ = *shared_count_; }

  /// The block's life, at its end.
  __device__ void finish(std::uint64_t begin) {
    unsigned sm = 0;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    put(records_, 0, {RecordKind::kBlock, nullptr, count_}, begin, global_timer(), sm);
  }

 private:
  __device__ void write(unsigned number, int role, const Subject& subject, std::uint64_t begin, std::uint64_t end) {
    if (number >= room_) return;
    put(records_ + 1 + number, role, subject, begin, end, reinterpret_cast<std::uint64_t>(subject.address));
  }

  __device__ static void put(Record* to, int role, const Subject& subject, std::uint64_t begin, std::uint64_t end,
                             std::uint64_t address) {
    constexpr std::uint64_t kLongest = 0xFFFF'FFFF;
    constexpr Size kMostWords = 255;
    const std::uint64_t duration = end - begin < kLongest ? end - begin : kLongest;
    const auto kinds = static_cast<std::uint32_t>(subject.kind) | static_cast<std::uint32_t>(role) << 8 |
                       subject.detail << 16 | static_cast<std::uint32_t>(min(subject.count, kMostWords)) << 24;
    store_vector(to, {{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin >> 32),
                       static_cast<std::uint32_t>(duration), kinds}});
    store_vector(reinterpret_cast<Vector*>(to) + 1,
                 {{static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32),
                   static_cast<std::uint32_t>(subject.payload), static_cast<std::uint32_t>(subject.payload >> 32)}});
  }

  Record* const records_;
  const unsigned room_;
  unsigned* const shared_count_;
  unsigned count_ = 0;
};

}  // namespace tandem::cuda
