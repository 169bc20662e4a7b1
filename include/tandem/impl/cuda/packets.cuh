#pragma once
/// The transfer of a fragment as packets: the packets that each thread writes and reads.

#include "tandem/impl/cuda/raw.cuh"
#include "tandem/signal.h"

namespace tandem::cuda {

/// The elements of a fragment that a thread of a group of `Threads` holds: vector u of thread t is number u * kPlaces +
/// t's place.
template <int Threads, class P>
struct Layout {
  static constexpr int kPlaces = Threads;
  __device__ static int place(int thread) { return thread; }
};
/// For 128-byte lines: of eight threads, the last carries the flag and holds no elements.
template <int Threads>
struct Layout<Threads, LL128Line> {
  static constexpr int kPlaces = Threads / 8 * 7;
  static constexpr int kNowhere = 1 << 24;  // beyond every fragment, also as a number of elements
  __device__ static int place(int thread) { return thread % 8 == 7 ? kNowhere : thread / 8 * 7 + thread % 8; }
};

/// A fragment of T as packets P on its way to this thread: 16 bytes of data for each thread. A small call thus needs
/// few registers and instructions.
template <class P, class T, int Threads>
class Arrival;

template <class T, int Threads>
class Arrival<LLPacket, T, Threads> {
 public:
  /// Number of PEs whose packets are polled together; more would not fit the registers.
  static constexpr int kAtOnce = 2;

  Arrival() = default;
  __device__ Arrival(const LLPacket* from, Size count, Epoch epoch, int thread)
      : from_(from),
        bytes_(static_cast<int>(count) * static_cast<int>(sizeof(T))),
        flag_(static_cast<std::uint32_t>(epoch)),
        thread_(thread) {}

  __device__ void fetch() {
    each([&](int pair, int at, int) { got_[pair] = load_packets(from_ + at / 4); });
  }
  /// Returns 0 once all is here. It has no branches, because it is evaluated after every poll.
  __device__ std::uint32_t wrong() const {
    std::uint32_t bits = 0;
    each([&](int pair, int, int left) {
      bits |= flag_of(pair, 0) ^ flag_;
      // The last packet of an odd count has no neighbour.
      bits |= left > 4 ? flag_of(pair, 1) ^ flag_ : 0;
    });
    return bits;
  }
  /// The place of a wrong flag, for reports.
  __device__ Epoch found() const {
    Epoch wrong_one = flag_;
    each([&](int pair, int, int left) {
      for (int i = 0; i < 2; ++i)
        if (flag_of(pair, i) != flag_ && left > 4 * i) wrong_one = flag_of(pair, i);
    });
    return wrong_one;
  }
  __device__ static bool agreed(bool mine) { return mine; }
  __device__ static bool any(bool mine) { return mine; }
  __device__ const void* address() const { return from_; }

  __device__ Raw<T, 1> raw() const {
    Raw<T, 1> raw;
#pragma unroll
    for (int i = 0; i < 4; ++i) raw.words(0)[i] = static_cast<std::uint32_t>(got_[i / 2].packet[i % 2]);
    return raw;
  }

  __device__ static void put(LLPacket* to, Size count, const Raw<T, 1>& raw, Epoch epoch, int thread) {
    const std::uint64_t flag = static_cast<std::uint64_t>(static_cast<std::uint32_t>(epoch)) << 32;
    const Arrival where(to, count, epoch, thread);
    where.each([&](int pair, int at, int left) {
      const std::uint32_t* const words = raw.words(0) + 2 * pair;
      if (left > 4)
        store_packets(to + at / 4, {{flag | words[0], flag | words[1]}});
      else
        store_relaxed(reinterpret_cast<std::uint64_t*>(to + at / 4), flag | words[0]);
    });
  }

 private:
  __device__ std::uint32_t flag_of(int pair, int i) const {
    return static_cast<std::uint32_t>(got_[pair].packet[i] >> 32);
  }
  /// Calls f(pair of packets, its first byte, remaining bytes) for this thread's packets.
  template <class F>
  __device__ void each(const F& f) const {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int at = thread_ * 16 + pair * 8;
      if (at < bytes_) f(pair, at, bytes_ - at);
    }
  }

  const LLPacket* from_;
  int bytes_;
  std::uint32_t flag_;
  int thread_;
  PacketPair got_[2] = {};  // see FragmentPlace::load
};

/// A warp writes and reads four lines at once, and tests their flags together.
template <class T, int Threads>
class Arrival<LL128Line, T, Threads> {
 public:
  static constexpr int kAtOnce = sizeof(T) == 1 && !std::is_same_v<T, std::byte> ? 2 : 4;

  Arrival() = default;
  __device__ Arrival(const LL128Line* from, Size count, Epoch epoch, int thread)
      : from_(from), lines_(lines_for(count)), flag_(epoch), thread_(thread) {}

  __device__ void fetch() {
    if (thread_ / 8 < lines_) got_ = load_packets(reinterpret_cast<const char*>(from_) + thread_ * 16);
  }
  __device__ std::uint64_t wrong() const {
    return thread_ / 8 < lines_ && thread_ % 8 == 7 ? got_.packet[1] ^ flag_ : 0;
  }
  __device__ Epoch found() const { return got_.packet[1]; }
  __device__ static bool agreed(bool mine) { return __all_sync(~0U, mine) != 0; }
  __device__ static bool any(bool mine) { return __any_sync(~0U, mine) != 0; }
  __device__ const void* address() const { return from_; }

  __device__ Raw<T, 1> raw() const {
    Raw<T, 1> raw;
#pragma unroll
    for (int i = 0; i < 4; ++i) raw.words(0)[i] = static_cast<std::uint32_t>(got_.packet[i / 2] >> (i % 2 * 32));
    return raw;
  }

  __device__ static void put(LL128Line* to, Size count, const Raw<T, 1>& raw, Epoch epoch, int thread) {
    if (thread / 8 >= lines_for(count)) return;
    const std::uint32_t* const words = raw.words(0);
    const PacketPair data{
        {words[0] | static_cast<std::uint64_t>(words[1]) << 32, words[2] | static_cast<std::uint64_t>(words[3]) << 32}};
    store_packets(reinterpret_cast<char*>(to) + thread * 16, thread % 8 == 7 ? PacketPair{{epoch, epoch}} : data);
  }
  /// The lines as they arrived.
  __device__ void pass_on(LL128Line* to) const {
    if (thread_ / 8 < lines_) store_packets(reinterpret_cast<char*>(to) + thread_ * 16, got_);
  }

 private:
  __device__ static int lines_for(Size count) {
    constexpr unsigned kData = sizeof(LL128Line::data);
    return static_cast<int>((static_cast<unsigned>(count) * unsigned{sizeof(T)} + kData - 1) / kData);
  }

  const LL128Line* from_;
  int lines_;
  Epoch flag_;
  int thread_;
  PacketPair got_ = {};  // see FragmentPlace::load
};

}  // namespace tandem::cuda
