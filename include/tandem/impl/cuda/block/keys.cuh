#pragma once
/// Ranks by keys, tables, and elements for all threads, through the shared memory of a GPU's block.

#include <cstdint>

#include "tandem/impl/cuda/block/sums.cuh"

namespace tandem::cuda {

/// Adds operations whose elements meet in shared memory.
template <int Threads, int Barrier, class P>
class GroupKeys : public GroupSums<Threads, Barrier, P> {
  static constexpr int kWarps = Threads / 32;
  static constexpr int kVectors = GroupSums<Threads, Barrier, P>::template kVectorsOf<std::int32_t>;
  static constexpr int kMost = Layout<Threads, P>::kPlaces * 4 * kVectors;  // elements of 4 bytes
  using Numbers = Fragment<std::int32_t, 4, kVectors>;

 public:
  using GroupSums<Threads, Barrier, P>::GroupSums;

  /// Each warp ranks consecutive elements, 32 at a time. Then its ranks follow those of the warps before. Some keys are
  /// counted at once.
  __device__ KeyRanks<Numbers> key_ranks(const Numbers& values, int keys) {
    __shared__ std::uint16_t elements_of_roles[GroupKeys::kRolesOfBody][kMost];
    __shared__ std::uint16_t counts_of_roles[GroupKeys::kRolesOfBody][kWarps + 1][kKeys];
    std::uint16_t* const elements = elements_of_roles[this->place_of_role()];
    std::uint16_t(*const counts)[kKeys] = counts_of_roles[this->place_of_role()];
    const int size = static_cast<int>(values.size());
    const int elements_of_warp = (size + Threads - 1) / Threads * 32;
    KeyRanks<Numbers> result{Numbers(size, values.valid()),
                             Numbers(keys, this->place_.template valid<std::int32_t>(keys))};
    this->sync();  // waits for readers of an earlier call
    this->place_.each_vector(values, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto key = static_cast<unsigned>(values.at(u, i));
        if (at + i < size)
          elements[at + i] = static_cast<std::uint16_t>(key < static_cast<unsigned>(keys) ? key : kNoKey);
        result.ranks.set(u, i, 0);
      }
    });
#pragma unroll 1
    for (int first = 0; first < keys; first += kKeys) {
      const int some = ::min(kKeys, keys - first);
      rank_in_warps(elements, size, elements_of_warp, counts, first, some);
      this->sync();
#pragma unroll 1
      for (int key = this->thread_; key < some; key += Threads) add_up(counts, key);
      this->sync();
      this->place_.each_vector(values, [&](int at, int u) {
        const int warp = at / elements_of_warp;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const unsigned key = static_cast<unsigned>(values.at(u, i)) - static_cast<unsigned>(first);
          if (at + i < size && key < static_cast<unsigned>(some))
            result.ranks.set(u, i, (elements[at + i] & ~kIsRank) + counts[warp][key]);
        }
      });
      this->place_.each_vector(result.counts, [&](int at, int u) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (at + i >= first && at + i < first + some) result.counts.set(u, i, counts[kWarps][at + i - first]);
      });
      if (first + some < keys) this->sync();
    }
    return result;
  }

  template <class T>
  __device__ auto look_up(const Fragment<T, 4, kVectors>& table, const Numbers& at) {
    static_assert(sizeof(T) == 4);
    __shared__ T of_roles[GroupKeys::kRolesOfBody][kMost];
    T* const shared = of_roles[this->place_of_role()];
    share(shared, table);
    Fragment<T, 4, kVectors> result(at.size(), at.valid());
    const int size = static_cast<int>(at.size());
    this->place_.each_vector(at, [&](int number, int u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) result.set(u, i, number + i < size && at.at(u, i) >= 0 ? shared[at.at(u, i)] : T{});
    });
    return result;
  }

  /// Threads share the rows of a column. Their loads are in flight together.
  __device__ Numbers column_sums(const std::int32_t* table, Range rows, Size columns) {
    constexpr int kAtOnce = 8;
    __shared__ std::int32_t of_roles[GroupKeys::kRolesOfBody][kMost];
    std::int32_t* const sums = of_roles[this->place_of_role()];
    const int wide = static_cast<int>(columns);
    const int threads_of_row = ::min(wide, Threads);
    const int step = Threads / ::max(1, threads_of_row);
    const int group = this->thread_ / ::max(1, threads_of_row);
    const int end = static_cast<int>(rows.end);
    this->sync();  // waits for readers of an earlier call
    for (int i = this->thread_; i < wide; i += Threads) sums[i] = 0;
    this->sync();
#pragma unroll 1
    for (int column = this->thread_ - group * threads_of_row; group < step && column < wide; column += threads_of_row) {
      std::int32_t sum = 0;
#pragma unroll 1
      for (int row = static_cast<int>(rows.begin) + group; row < end; row += kAtOnce * step) {
        std::int32_t loaded[kAtOnce];
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u)
          loaded[u] = row + u * step < end ? this->load_scalar(table + Size{row + u * step} * wide + column) : 0;
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) sum += loaded[u];
      }
      atomicAdd(sums + column, sum);
    }
    this->sync();
    Numbers result(columns, this->place_.template valid<std::int32_t>(columns));
    this->place_.each_vector(result, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) result.set(u, i, at + i < wide ? sums[at + i] : 0);
    });
    return result;
  }

  template <class T, int W, int V>
  __device__ Few<T> pick(const Fragment<T, W, V>& values, Size first, int count) {
    __shared__ T of_roles[GroupKeys::kRolesOfBody][32];
    T* const shared = of_roles[this->place_of_role()];
    const int begin = static_cast<int>(first);
    this->sync();  // waits for readers of an earlier call
    this->place_.each_vector(values, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < W; ++i)
        if (at + i >= begin && at + i < begin + count) shared[at + i - begin] = values.at(u, i);
    });
    this->sync();
    const int lane = this->thread_ % 32;
    return {lane < count ? shared[lane] : T{}, count};
  }

  template <int kGroup, class T, int W, int V>
  __device__ auto group_firsts(const Fragment<T, W, V>& values) {
    static_assert(sizeof(T) == 4 && kGroup % W == 0, "a vector lies within one group");
    constexpr int kGroups = (Layout<Threads, P>::kPlaces * W * V + kGroup - 1) / kGroup;
    __shared__ T of_roles[GroupKeys::kRolesOfBody][kGroups];
    T* const shared = of_roles[this->place_of_role()];
    this->sync();  // waits for readers of an earlier call
    this->place_.each_vector(values, [&](int at, int u) {
      if (at % kGroup == 0) shared[at / kGroup] = values.at(u, 0);
    });
    this->sync();
    const int groups = (static_cast<int>(values.size()) + kGroup - 1) / kGroup;
    Fragment<T, 4, kVectors> result(groups, this->place_.template valid<T>(groups));
    this->place_.each_vector(result, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) result.set(u, i, at + i < groups ? shared[at + i] : T{});
    });
    return result;
  }

 private:
  static constexpr int kKeys = 256;  // counted at once
  static constexpr unsigned kNoKey = 0x7FFF;
  static constexpr unsigned kIsRank = 0x8000;  // of an element in place of its key
  static_assert(kMost < static_cast<int>(kNoKey));

  /// Replaces keys from `first` on by ranks within the elements of a warp, and counts them.
  __device__ void rank_in_warps(std::uint16_t* elements, int size, int elements_of_warp, std::uint16_t (*counts)[kKeys],
                                int first, int some) {
    const int warp = this->thread_ / 32;
    const int lane = this->thread_ % 32;
    std::uint16_t* const of_warp = counts[warp];
    for (int key = lane; key < some; key += 32) of_warp[key] = 0;
    if (first == 0) this->sync();  // keys of other warps' elements
    __syncwarp();
    const int end = ::min(size, (warp + 1) * elements_of_warp);
#pragma unroll 1
    for (int begin = warp * elements_of_warp; begin < end; begin += 32) {
      const int at = begin + lane;
      const unsigned key = (at < end ? elements[at] : kNoKey) - static_cast<unsigned>(first);
      const bool is_wanted = key < static_cast<unsigned>(some);
      const unsigned same = __match_any_sync(~0U, is_wanted ? key : kNoKey);
      const unsigned before = is_wanted ? of_warp[key] : 0;
      __syncwarp();
      if (is_wanted) {
        const unsigned lower = same & ((1U << lane) - 1);
        elements[at] = static_cast<std::uint16_t>(kIsRank | (before + __popc(lower)));
        if (lower == 0) of_warp[key] = static_cast<std::uint16_t>(before + __popc(same));
      }
      __syncwarp();
    }
  }

  /// Replaces a key's counts by those of the warps before, and appends the sum.
  __device__ static void add_up(std::uint16_t (*counts)[kKeys], int key) {
    unsigned sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      const unsigned its = counts[warp][key];
      counts[warp][key] = static_cast<std::uint16_t>(sum);
      sum += its;
    }
    counts[kWarps][key] = static_cast<std::uint16_t>(sum);
  }

  template <class T, int V>
  __device__ void share(T* shared, const Fragment<T, 4, V>& table) {
    const int size = static_cast<int>(table.size());
    this->sync();  // waits for readers of an earlier call
    this->place_.each_vector(table, [&](int at, int u) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (at + i < size) shared[at + i] = table.at(u, i);
    });
    this->sync();
  }
};

}  // namespace tandem::cuda
