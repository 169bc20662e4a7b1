#pragma once
/// Writes records: one thread of a block or role does.

#include "tandem/impl/cuda/ptx.cuh"
#include "tandem/impl/cuda/record.h"
#include "tandem/range.h"

namespace tandem::cuda {

/// What an operation says of itself.
struct Subject {
  RecordKind kind;
  const void* address = nullptr;
  std::uint64_t payload = 0;
  unsigned detail = 0;
  Size count = 0;
};

// No branches: they would part what the assembler may put side by side, above all loads that are under way together.
// All threads work a record out, and one writes it.

/// The timer in threads where `on`, elsewhere anything.
__device__ inline std::uint64_t timer_if(bool on) {
  std::uint64_t ns;
  asm volatile(
      "{\n\t"
      ".reg .pred on;\n\t"
      "setp.ne.u32 on, %1, 0;\n\t"
      "mov.u64 %0, 0;\n\t"
      "@on mov.u64 %0, %globaltimer;\n\t"
      "}"
      : "=l"(ns)
      : "r"(static_cast<unsigned>(on)));
  return ns;
}

/// The same only after `value` is known: an instruction that the assembler cannot leave out waits for it.
__device__ inline std::uint64_t timer_after(bool on, std::uint32_t value) {
  std::uint64_t ns;
  asm volatile(
      "{\n\t"
      ".reg .pred on, unlikely;\n\t"
      "setp.ne.u32 on, %1, 0;\n\t"
      "setp.eq.u32 unlikely, %2, 0x7fb7fb7f;\n\t"
      "mov.u64 %0, 0;\n\t"
      "@unlikely nanosleep.u32 1;\n\t"
      "@on mov.u64 %0, %globaltimer;\n\t"
      "}"
      : "=l"(ns)
      : "r"(static_cast<unsigned>(on)), "r"(value)
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

  /// Operation `number` of the block, from `begin` to now; by the thread where `on`.
  __device__ void add(bool on, unsigned number, const Subject& subject, std::uint64_t begin) {
    put(on && number < room_, records_ + 1 + number, 0, subject, begin,
        reinterpret_cast<std::uint64_t>(subject.address));
  }
  /// By the one thread that records for role `role`.
  __device__ void add_from_role(int role, const Subject& subject, std::uint64_t begin) {
    const unsigned number = atomicAdd_block(shared_count_, 1U);
    put(number < room_, records_ + 1 + number, role, subject, begin, reinterpret_cast<std::uint64_t>(subject.address));
  }

  /// Around the time in which roles record, with barriers of the block in between: how many operations there were
  /// before, and there are then.
  __device__ void lend(unsigned count) { *shared_count_ = count; }
  __device__ unsigned take_back() const { return *static_cast<const volatile unsigned*>(shared_count_); }

  /// The block's life, at its end.
  __device__ void finish(std::uint64_t begin, unsigned count) {
    unsigned sm = 0;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    put(true, records_, 0, {RecordKind::kBlock, nullptr, count}, begin, sm);
  }

 private:
  __device__ static void put(bool on, Record* to, int role, const Subject& subject, std::uint64_t begin,
                             std::uint64_t address) {
    constexpr Size kMostWords = 255;
    const auto kinds = static_cast<std::uint32_t>(subject.kind) | static_cast<std::uint32_t>(role) << 8 |
                       subject.detail << 16 | static_cast<std::uint32_t>(min(subject.count, kMostWords)) << 24;
    asm volatile(
        "{\n\t"
        ".reg .pred on;\n\t"
        ".reg .u64 duration;\n\t"
        ".reg .u32 low, high, ns;\n\t"
        "setp.ne.u32 on, %0, 0;\n\t"
        "mov.u64 duration, 0;\n\t"
        "@on mov.u64 duration, %globaltimer;\n\t"
        "sub.u64 duration, duration, %2;\n\t"
        "min.u64 duration, duration, 0xffffffff;\n\t"
        "cvt.u32.u64 ns, duration;\n\t"
        "mov.b64 {low, high}, %2;\n\t"
        "@on st.global.v4.u32 [%1], {low, high, ns, %3};\n\t"
        "@on st.global.v2.u64 [%1 + 16], {%4, %5};\n\t"
        "}" ::"r"(static_cast<unsigned>(on)),
        "l"(to), "l"(begin), "r"(kinds), "l"(address), "l"(subject.payload));
  }

  Record* const records_;
  const unsigned room_;
  unsigned* const shared_count_;
};

}  // namespace tandem::cuda
