#pragma once
/// How a fragment travels as packets: which thread writes and reads which of them.

#include "tandem/impl/cuda/raw.cuh"
#include "tandem/signal.h"

namespace tandem::cuda {

/// Which elements of a fragment a thread of a group of `Threads` holds: vector u of thread t is number
/// u * kPlaces + t's place.
template <int Threads, bool Lines>
struct Layout {
  static constexpr int kPlaces = Threads;
  __device__ static int place(int thread) { return thread; }
};
/// For 128-byte lines: of eight threads, the last carries the flag and holds no elements.
template <int Threads>
struct Layout<Threads, true> {
  static constexpr int kPlaces = Threads / 8 * 7;
  static constexpr int kNowhere = 1 << 30;
  __device__ static int place(int thread) { return thread % 8 == 7 ? kNowhere : thread / 8 * 7 + thread % 8; }
};

/// A fragment of T as packets P, under way to this thread.
template <class P, class T, int Threads>
class Arrival;

template <class T, int Threads>
class Arrival<LLPacket, T, Threads> {
 public:
  __device__ Arrival(const LLPacket* from, Size count, Epoch epoch, int thread)
      : from_(from), bytes_(count * Size{sizeof(T)}), flag_(static_cast<std::uint32_t>(epoch)), thread_(thread) {}

  __device__ void fetch() {
    each([&](int u, int pair, Size at, Size) { got_[u][pair] = load_packets(from_ + at / 4); });
  }
  /// Whether all is here; where not, `found` is a flag that is not the right one.
  __device__ bool is_complete(Epoch& found) const {
    bool complete = true;
    each([&](int u, int pair, Size, Size left) {
      const auto first = static_cast<std::uint32_t>(got_[u][pair].packet[0] >> 32);
      // The last packet of an odd count stands alone.
      const auto second = left > 4 ? static_cast<std::uint32_t>(got_[u][pair].packet[1] >> 32) : flag_;
      if (first == flag_ && second == flag_) return;
      complete = false;
      found = first == flag_ ? second : first;
    });
    return complete;
  }
  __device__ static bool agreed(bool mine) { return mine; }
  __device__ static bool any(bool mine) { return mine; }
  __device__ const void* address() const { return from_; }

  __device__ Raw<T> raw() const {
    Raw<T> raw;
#pragma unroll
    for (int u = 0; u < kVectors<T>; ++u)
#pragma unroll
      for (int i = 0; i < 4; ++i) raw.words(u)[i] = static_cast<std::uint32_t>(got_[u][i / 2].packet[i % 2]);
    return raw;
  }

  __device__ static void put(LLPacket* to, Size count, const Raw<T>& raw, Epoch epoch, int thread) {
    const std::uint64_t flag = static_cast<std::uint64_t>(static_cast<std::uint32_t>(epoch)) << 32;
    const Arrival where(to, count, epoch, thread);
    where.each([&](int u, int pair, Size at, Size left) {
      const std::uint32_t* const words = raw.words(u) + 2 * pair;
      if (left > 4)
        store_packets(to + at / 4, {{flag | words[0], flag | words[1]}});
      else
        store_relaxed(reinterpret_cast<std::uint64_t*>(to + at / 4), flag | words[0]);
    });
  }

 private:
  /// f(vector, pair of packets, its first byte, bytes from there on) of what is this thread's.
  template <class F>
  __device__ void each(const F& f) const {
#pragma unroll
    for (int u = 0; u < kVectors<T>; ++u)
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const Size at = (Size{u} * Threads + thread_) * 16 + pair * 8;
        if (at < bytes_) f(u, pair, at, bytes_ - at);
      }
  }

  const LLPacket* from_;
  Size bytes_;
  std::uint32_t flag_;
  int thread_;
  PacketPair got_[kVectors<T>][2];
};

/// A warp writes and reads four lines at once, and looks at their flags together.
template <class T, int Threads>
class Arrival<LL128Line, T, Threads> {
 public:
  __device__ Arrival(const LL128Line* from, Size count, Epoch epoch, int thread)
      : from_(from), lines_(packets_for<LL128Line>(count * Size{sizeof(T)})), flag_(epoch), thread_(thread) {}

  __device__ void fetch() {
    each([&](int u, Size byte) { got_[u] = load_packets(reinterpret_cast<const char*>(from_) + byte); });
  }
  __device__ bool is_complete(Epoch& found) const {
    bool complete = true;
    each([&](int u, Size) {
      if (thread_ % 8 != 7 || got_[u].packet[1] == flag_) return;
      complete = false;
      found = got_[u].packet[1];
    });
    return complete;
  }
  __device__ static bool agreed(bool mine) { return __all_sync(~0U, mine) != 0; }
  __device__ static bool any(bool mine) { return __any_sync(~0U, mine) != 0; }
  __device__ const void* address() const { return from_; }

  __device__ Raw<T> raw() const {
    Raw<T> raw;
#pragma unroll
    for (int u = 0; u < kVectors<T>; ++u)
#pragma unroll
      for (int i = 0; i < 4; ++i) raw.words(u)[i] = static_cast<std::uint32_t>(got_[u].packet[i / 2] >> (i % 2 * 32));
    return raw;
  }

  __device__ static void put(LL128Line* to, Size count, const Raw<T>& raw, Epoch epoch, int thread) {
    const Arrival where(to, count, epoch, thread);
    where.each([&](int u, Size byte) {
      const std::uint32_t* const words = raw.words(u);
      const PacketPair data{{words[0] | static_cast<std::uint64_t>(words[1]) << 32,
                             words[2] | static_cast<std::uint64_t>(words[3]) << 32}};
      store_packets(reinterpret_cast<char*>(to) + byte, thread % 8 == 7 ? PacketPair{{epoch, epoch}} : data);
    });
  }

 private:
  /// f(vector, its first byte) of this thread's 16 bytes of each line.
  template <class F>
  __device__ void each(const F& f) const {
#pragma unroll
    for (int u = 0; u < kVectors<T>; ++u) {
      const Size line = Size{u} * (Threads / 8) + thread_ / 8;
      if (line < lines_) f(u, line * Size{sizeof(LL128Line)} + thread_ % 8 * 16);
    }
  }

  const LL128Line* from_;
  Size lines_;
  Epoch flag_;
  int thread_;
  PacketPair got_[kVectors<T>];
};

}  // namespace tandem::cuda
