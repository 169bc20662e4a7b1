#pragma once
/// How a block of the kernel for few rows adds up what all PEs computed. Thread by thread it sends its sums to the same
/// thread on every peer, and takes theirs. A word that is not zero has arrived: zeros are sent as -0 in the upper half,
/// and who has read a word makes it zero again.
///
/// Two places take turns. A PE writes to the place of call c + 2 when its kernel of call c + 1 is complete, so when it
/// has everybody's words of that call; they are sent when the kernel of call c is complete, with its words read and
/// made zero.

#include <cutlass/arch/grid_dependency_control.h>

#include "gemm/cuda/finish.cuh"
#include "gemm/few_rows.h"
#include "tandem/impl/cuda/patience.cuh"

namespace tandem::cuda {

/// Where sums are exchanged, as the kernel reads it.
struct DeviceSum {
  Symm<std::byte> exchange;
  Epoch* calls = nullptr;  ///< null: nothing is added up
  int columns = 0;
  int rows = 0;
  Context context;
};

/// Each word by itself is never torn.
__device__ inline void store_words(std::byte* to, const Vector& v) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]),
               "r"(v.word[2]), "r"(v.word[3])
               : "memory");
}
__device__ inline Vector load_words(const std::byte* from) {
  Vector v;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "l"(from)
               : "memory");
  return v;
}

/// Element: of C, 16 bits. Rows: that a block has.
template <class Element, int Rows>
class TransposedSum {
  static constexpr int kVectors = Rows / 16;
  static constexpr int kBlocks = (Rows + kFewRowsBlock - 1) / kFewRowsBlock;          // of rows, tiles of their own
  static constexpr int kOfBlock = kFewRowsBlock / 16;                                 // vectors
  static constexpr int kStep = FewRowsExchange::kThreads * FewRowsExchange::kVector;  // from one to the next
  static_assert(Rows % 16 == 0 && (Rows <= kFewRowsBlock || Rows % kFewRowsBlock == 0));

 public:
  /// For one thread of the 128 of column `column` of tiles, with rows from `row` on.
  __device__ TransposedSum(const DeviceSum& sum, int column, int row, int thread)
      : sum_(sum), places_(sum.columns, sum.context.team.size), column_(column), row_(row), thread_(thread) {
    // What the call before wrote, here and at the peers: no kernel has waited for it in this warp.
    cutlass::arch::wait_on_dependent_grids();
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) call_[i] = load_relaxed(sum.calls + tile(i));
  }

  /// Sends `Count` / 8 vectors, from the `first`-th on. Of each 16 rows a thread has eight sums: pairs of neighbouring
  /// rows, in two columns, and again eight rows below.
  template <int Count, class Sums>
  __device__ void send(const Sums& sums, int first) {
#pragma unroll
    for (int i = 0; i < Count / 8; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const std::uint32_t word = packed<Element>(sums(i * 8 + w * 2), sums(i * 8 + w * 2 + 1));
        own_[first + i].word[w] = word == 0 ? kZero : word;
      }
    const Team& team = sum_.context.team;
    for (int step = 1; step < team.size; ++step) {
      const int peer = (team.me + step) % team.size;
#pragma unroll
      for (int i = first; i < first + Count / 8; ++i)
        if (has(i)) store_words(place(peer, team.me, i), own_[i]);
    }
  }

  /// The sums over all PEs of `Count` / 8 vectors, from the `first`-th on.
  template <int Count>
  __device__ void add_up(float (&values)[Count], int first) const {
    const Team& team = sum_.context.team;
#pragma unroll
    for (float& value : values) value = 0;
    for (int pe = 0; pe < team.size; ++pe) {
      Vector of_pe[Count / 8];
#pragma unroll
      for (int i = 0; i < Count / 8; ++i) of_pe[i] = own_[first + i];
      if (pe != team.me) take(of_pe, first, pe);
#pragma unroll
      for (int i = 0; i < Count; i += 2) {
        const Pair pair = unpacked<Element>(of_pe[i / 8].word[i % 8 / 2]);
        values[i] += pair.first;
        values[i + 1] += pair.second;
      }
    }
  }

 private:
  static constexpr std::uint32_t kZero = 0x80000000U;

  __device__ int tile(int block) const { return places_.tile(column_, row_ / kFewRowsBlock + block); }
  __device__ bool has(int vector) const { return row_ + vector * 16 + thread_ % 4 * 2 < sum_.rows; }
  __device__ std::byte* place(int at, int from, int vector) const {
    const int block = vector / kOfBlock;
    return sum_.exchange.on(at) + places_.place(call_[block], from, tile(block)) + vector % kOfBlock * kStep +
           place_of_thread() * FewRowsExchange::kVector;
  }
  /// Of a few rows one in four threads has some: theirs lie side by side. Where others lay between them, sectors of
  /// memory would be written in part, and first be read to fill them up.
  __device__ int place_of_thread() const { return thread_ % 4 * (FewRowsExchange::kThreads / 4) + thread_ / 4; }

  template <int Vectors>
  __device__ void take(Vector (&theirs)[Vectors], int first, int pe) const {
    static_assert(Vectors <= kOfBlock);
    std::byte* const from = place(sum_.context.team.me, pe, first);
    Patience patience(sum_.context);
    for (bool is_here = false; !is_here;) {
      is_here = true;
#pragma unroll
      for (int i = 0; i < Vectors; ++i) {
        if (!has(first + i)) continue;
        theirs[i] = load_words(from + i * kStep);
#pragma unroll
        for (int w = 0; w < 4; ++w) is_here = is_here && theirs[i].word[w] != 0;
      }
      if (!is_here && patience.is_due() && patience.is_over(from, 1, 0)) break;
    }
#pragma unroll
    for (int i = 0; i < Vectors; ++i)
      if (has(first + i)) store_words(from + i * kStep, Vector{0, 0, 0, 0});
  }

  const DeviceSum& sum_;
  const FewRowsExchange places_;
  const int column_;
  const int row_;
  const int thread_;
  Epoch call_[kBlocks];
  Vector own_[kVectors];
};

}  // namespace tandem::cuda
