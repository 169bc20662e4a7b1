#pragma once
/// Addition over all PEs in a block of the kernel for few rows. Each thread sends its sums to the same thread on every
/// peer, and takes theirs. A word that is not zero has arrived: zeros are sent as -0 in the upper half, and the reader
/// sets the word to zero again.
///
/// Two places alternate. A PE writes to the place of call c + 2 when its kernel of call c + 1 is complete. It then has
/// every PE's words of that call, which are sent when the kernel of call c is complete. At that time the words of call
/// c are read and set to zero.
///
/// For more rows, with more than two PEs, each tile's sums have an owner. Only the owner gets every PE's sums, in the
/// same places. Its result goes to all other PEs' place for it. That is a second trip, but with four PEs it is half of
/// the bytes. Each PE has to own a tile: a PE that ends a call then has words that every PE sent in it.

#include "gemm/contract/skinny.h"
#include "gemm/hopper/epilogue.cuh"
#include "tandem/impl/cuda/watchdog.cuh"

namespace tandem::cuda {

/// The exchange of sums in the form that the kernel reads.
struct DeviceSum {
  Symm<std::byte> exchange;
  Epoch* calls = nullptr;  ///< null: no addition over PEs
  int columns = 0;
  int rows = 0;
  Context context;
};

/// A word by itself is never torn.
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

/// Element is the type of C, 16 bits. Rows are the rows of a block.
template <class Element, int Rows>
class TransposedSum {
  static constexpr int kVectors = Rows / 16;
  static constexpr int kBlocks = (Rows + kSkinnyBlock - 1) / kSkinnyBlock;          // blocks of rows
  static constexpr int kOfBlock = kSkinnyBlock / 16;                                // vectors
  static constexpr int kStep = SkinnyExchange::kThreads * SkinnyExchange::kVector;  // from one vector to the next
  static_assert(Rows % 16 == 0 && (Rows <= kSkinnyBlock || Rows % kSkinnyBlock == 0));

 public:
  /// For one thread of the 128 of column `column` of tiles, with rows from `row` on.
  __device__ TransposedSum(const DeviceSum& sum, int column, int row, int thread)
      : sum_(sum),
        places_(sum.columns, sum.context.team.size),
        column_(column),
        row_(row),
        thread_(thread),
        by_owner_(kManyRows && sum.context.team.size > 2),
        owner_(column % sum.context.team.size) {
    // The previous call may still write, here and at the peers, because this warp has not waited for its kernel.
    wait_for_previous_grid();
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) call_[i] = load_relaxed(sum.calls + tile(i));
  }

  /// Returns the number of the call, counted from 0.
  __device__ Epoch call() const { return call_[0]; }

  /// Sends `Count` / 8 vectors, from the `first`-th on. For each 16 rows a thread has eight sums: pairs of neighbouring
  /// rows in two columns, and again eight rows below.
  template <int Count, class Sums>
  __device__ void send(const Sums& sums, int first) {
#pragma unroll
    for (int i = 0; i < Count / 8; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const std::uint32_t word = packed<Element>(sums(i * 8 + w * 2), sums(i * 8 + w * 2 + 1));
        own_[first + i].word[w] = word == 0 ? kZero : word;
      }
    if (!by_owner_)
      send_to_peers<Count / 8>(&own_[first], first);
    else if (owner_ != sum_.context.team.me)
      send_to<Count / 8>(&own_[first], first, owner_);
  }

  /// Computes the sums over all PEs of `Count` / 8 vectors, from the `first`-th on, with `activate(values)` applied.
  template <int Count, class Activate>
  __device__ void complete(float (&values)[Count], int first, const Activate& activate) const {
    if (by_owner_ && owner_ != sum_.context.team.me) return take_sums(values, first);
    add_up(values, first);
    activate(values);
    if (by_owner_) spread(values, first);
  }

 private:
  static constexpr std::uint32_t kZero = 0x80000000U;
  /// From so many rows on, with more than two PEs, the bytes on the link cost more than a second trip.
  static constexpr bool kManyRows = Rows >= 48;
  static_assert(kManyRows == skinny_has_owners(Rows, 3));
  /// PEs whose words are loaded together.
  static constexpr int kAtOnce = 4;

  template <int Vectors>
  __device__ void send_to(const Vector* vectors, int first, int peer) const {
#pragma unroll
    for (int i = 0; i < Vectors; ++i)
      if (has(first + i)) store_words(place(peer, sum_.context.team.me, first + i), vectors[i]);
  }
  template <int Vectors>
  __device__ void send_to_peers(const Vector* vectors, int first) const {
    const Team& team = sum_.context.team;
    for (int step = 1; step < team.size; ++step) send_to<Vectors>(vectors, first, (team.me + step) % team.size);
  }

  template <int Count>
  __device__ void add_up(float (&values)[Count], int first) const {
    const Team& team = sum_.context.team;
#pragma unroll
    for (float& value : values) value = 0;
#pragma unroll 1
    for (int begin = 0; begin < team.size; begin += kAtOnce) {
      Vector theirs[kAtOnce][Count / 8];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (begin + u < team.size && begin + u != team.me) load(theirs[u], first, begin + u);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int pe = begin + u;
        if (pe >= team.size) break;
        if (pe != team.me) take(theirs[u], first, pe);
#pragma unroll
        for (int i = 0; i < Count; i += 2) {
          const std::uint32_t own = own_[first + i / 8].word[i % 8 / 2];
          const Pair pair = unpacked<Element>(pe == team.me ? own : theirs[u][i / 8].word[i % 8 / 2]);
          values[i] += pair.first;
          values[i + 1] += pair.second;
        }
      }
    }
  }

  /// The owner's part: it sends the sums to all peers, rounded, and keeps them rounded.
  template <int Count>
  __device__ void spread(float (&values)[Count], int first) const {
    Vector sums[Count / 8];
#pragma unroll
    for (int i = 0; i < Count; i += 2) {
      const std::uint32_t word = packed<Element>(values[i], values[i + 1]);
      sums[i / 8].word[i % 8 / 2] = word == 0 ? kZero : word;
    }
    send_to_peers<Count / 8>(sums, first);
    unpack(sums, values);
  }

  /// The other PEs' part.
  template <int Count>
  __device__ void take_sums(float (&values)[Count], int first) const {
    Vector sums[Count / 8];
    load(sums, first, owner_);
    take(sums, first, owner_);
    unpack(sums, values);
  }

  /// Sets the words to zero again, with the sent zeros restored, on all PEs.
  template <int Count>
  __device__ static void unpack(const Vector (&sums)[Count / 8], float (&values)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; i += 2) {
      const std::uint32_t word = sums[i / 8].word[i % 8 / 2];
      const Pair pair = unpacked<Element>(word == kZero ? 0 : word);
      values[i] = pair.first;
      values[i + 1] = pair.second;
    }
  }

  __device__ int tile(int block) const { return places_.tile(column_, row_ / kSkinnyBlock + block); }
  __device__ bool has(int vector) const { return row_ + vector * 16 + thread_ % 4 * 2 < sum_.rows; }
  __device__ std::byte* place(int at, int from, int vector) const {
    const int block = vector / kOfBlock;
    return sum_.exchange.on(at) + places_.place(call_[block], from, tile(block)) + vector % kOfBlock * kStep +
           place_of_thread() * SkinnyExchange::kVector;
  }
  /// For few rows one in four threads has data. Their data is contiguous: with gaps, sectors of memory would be written
  /// in part, and first be read.
  __device__ int place_of_thread() const { return thread_ % 4 * (SkinnyExchange::kThreads / 4) + thread_ / 4; }

  template <int Vectors>
  __device__ void load(Vector (&theirs)[Vectors], int first, int pe) const {
    static_assert(Vectors <= kOfBlock);
    const std::byte* const from = place(sum_.context.team.me, pe, first);
#pragma unroll
    for (int i = 0; i < Vectors; ++i)
      if (has(first + i)) theirs[i] = load_words(from + i * kStep);
  }

  template <int Vectors>
  __device__ bool are_here(const Vector (&theirs)[Vectors], int first) const {
    bool here = true;
#pragma unroll
    for (int i = 0; i < Vectors; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w) here = here && (!has(first + i) || theirs[i].word[w] != 0);
    return here;
  }

  /// The loaded words may not have arrived yet.
  template <int Vectors>
  __device__ void take(Vector (&theirs)[Vectors], int first, int pe) const {
    std::byte* const from = place(sum_.context.team.me, pe, first);
    Watchdog watchdog(sum_.context);
    while (!are_here(theirs, first)) {
      if (watchdog.is_due() && watchdog.is_over_without_call(from, 1, 0)) break;
      load(theirs, first, pe);
    }
#pragma unroll
    for (int i = 0; i < Vectors; ++i)
      if (has(first + i)) store_words(from + i * kStep, Vector{0, 0, 0, 0});
  }

  const DeviceSum& sum_;
  const SkinnyExchange places_;
  const int column_;
  const int row_;
  const int thread_;
  const bool by_owner_;  // one PE adds and all get its sums; otherwise every PE adds
  const int owner_;
  Epoch call_[kBlocks];
  Vector own_[kVectors];
};

}  // namespace tandem::cuda
