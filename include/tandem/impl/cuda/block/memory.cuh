#pragma once
/// Loads, stores and copies of a GPU's block.

#include <cstdint>
#include <type_traits>

#include "tandem/impl/cuda/block/few.cuh"
#include "tandem/impl/cuda/block/state.cuh"
#include "tandem/impl/cuda/thread_copy.cuh"
#include "tandem/reduce_op.h"

namespace tandem::cuda {

/// Adds loads, stores and copies.
template <int Threads, int Barrier, class P>
class GroupMemory : public GroupState<Threads, Barrier, P> {
 public:
  using GroupState<Threads, Barrier, P>::GroupState;

  template <class T>
  static constexpr int kVectorsOf = FragmentPlace<Threads, P>::template kVectorsOf<T>;
  template <class A, class T>
  using FragmentFor = Fragment<A, kWidth<T>, kVectorsOf<T>>;
  template <class T>
  using FragmentOf = FragmentFor<T, T>;

  template <class T>
  __device__ T* remote(Symm<T> symm, int pe) const {
    return symm.on(pe);
  }

  template <class A, class T>
  __device__ auto load(const T* from, Range range) {
    Raw<T, kVectorsOf<T>> raw;
    this->place_.load(raw, from, range);
    return raw.template as<A>(range.size(), this->place_.template valid<T>(range.size()));
  }

  template <class U, class A, class T>
  __device__ auto load_as(const T* from, Range range) {
    constexpr int kElements = kWidth<U> * kVectorsOf<U>;
    Elements<T, kElements> elements;
    this->place_.template load_as<U>(elements, from, range);
    Fragment<A, kWidth<U>, kVectorsOf<U>> result(range.size(), this->place_.template valid<U>(range.size()));
    convert_elements(result.elements(), elements, 0, kElements);
    return result;
  }

  template <class T>
  __device__ T load_scalar(const T* from) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
    if constexpr (std::is_scalar_v<T>) {
      return *static_cast<const volatile T*>(from);
    } else {  // a volatile class cannot be copied
      const auto bits = *reinterpret_cast<const volatile WordOfSize<sizeof(T)>*>(from);
      T value;
      __builtin_memcpy(&value, &bits, sizeof(T));
      return value;
    }
  }

  template <class T>
  using FewOf = Few<T>;
  template <class T>
  __device__ Few<T> load_few(const T* from, int count) {
    const int lane = this->thread_ % 32;
    return {lane < count ? load_scalar(from + lane) : T{}, count};
  }

  /// Loads of four PEs are in flight at once. Values are reduced in PE order.
  template <class A, class T>
  __device__ auto load_reduce(Symm<T> from, Range range, ReduceOp op) {
    using Element = std::remove_const_t<T>;
    constexpr int kAtOnce = 4;
    Fragment<A, kWidth<Element>, kVectorsOf<Element>> result(range.size(),
                                                             this->place_.template valid<Element>(range.size()));
#pragma unroll 1
    for (int first = 0; first < this->num_pes(); first += kAtOnce) {
      Raw<Element, kVectorsOf<Element>> raw[kAtOnce] = {};  // see FragmentPlace::load
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u)
        if (first + u < this->num_pes()) this->place_.template load<Element>(raw[u], from.on(first + u), range);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (first + u >= this->num_pes()) break;
        const auto values = raw[u].template as<A>(range.size(), result.valid());
        result = first + u == 0 ? values : combine(op, result, values);
      }
    }
    return result;
  }

  template <class T, class A>
  __device__ void store(T* to, Range range, const Fragment<A, kWidth<T>, kVectorsOf<T>>& values) {
    this->place_.store(to, range, values);
  }
  /// Converts a fragment that comes from an array with elements of another size.
  template <class T, class A, int W, int V>
  requires(W != kWidth<T> || V != kVectorsOf<T>) __device__
      void store(T* to, Range range, const Fragment<A, W, V>& values) {
    this->place_.store_converted(to, range, values);
  }

  template <class T>
  __device__ void store_scalar(T* to, T value) {
    if (this->thread_ == 0) *to = value;
  }

  /// Threads take other elements in a copy than in loads and stores, so the block synchronises before and after it.
  template <class T>
  __device__ void copy(T* to, const std::type_identity_t<T>* from, Size count) {
    this->sync();
    copy_bytes<Threads>(this->thread_, reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from),
                        count * Size{sizeof(T)});
    this->sync();
  }

  template <class A, int W, int V>
  __device__ auto combine(ReduceOp op, const Fragment<A, W, V>& a, const Fragment<A, W, V>& b) const {
    // The operation is uniform: one branch for the whole fragment.
    switch (op) {
      case ReduceOp::kProd:
        return a.zip(b, [](A x, A y) { return apply(ReduceOp::kProd, x, y); });
      case ReduceOp::kMin:
        return a.zip(b, [](A x, A y) { return apply(ReduceOp::kMin, x, y); });
      case ReduceOp::kMax:
        return a.zip(b, [](A x, A y) { return apply(ReduceOp::kMax, x, y); });
      default:
        return a.zip(b, [](A x, A y) { return apply(ReduceOp::kSum, x, y); });
    }
  }

  template <class T, class A, int W, int V>
  __device__ void store_at(T* to, const Fragment<std::int32_t, W, V>& at, const Fragment<A, W, V>& values) {
    const int size = static_cast<int>(at.size());
    this->place_.each_vector(at, [&](int first, int u) {
#pragma unroll
      for (int i = 0; i < W; ++i)
        if (first + i < size && at.at(u, i) >= 0) to[at.at(u, i)] = convert<T>(values.at(u, i));
    });
  }

  // There is no multicast, as has_multicast reports. A kernel that asks compiles; one that does not ask ends with an
  // error.

  template <class T, class Values>
  __device__ void multimem_store(Symm<T>, Range, const Values&) {
    __trap();
  }
  template <class A, class T>
  __device__ FragmentFor<A, std::remove_const_t<T>> multimem_load_reduce(Symm<T>, Range range, ReduceOp) {
    __trap();
    return FragmentFor<A, std::remove_const_t<T>>(range.size());
  }
  template <class T, class Values>
  __device__ void multimem_reduce(Symm<T>, Range, const Values&, ReduceOp) {
    __trap();
  }
};

}  // namespace tandem::cuda
