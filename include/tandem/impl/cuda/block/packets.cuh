#pragma once
/// Packets of a GPU's block: puts whose data is its own signal, and the waits for them.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tandem/impl/cuda/block/signals.cuh"
#include "tandem/impl/cuda/packets.cuh"

namespace tandem::cuda {

/// Adds packets.
template <int Threads, int Barrier, class P>
class GroupPackets : public GroupSignals<Threads, Barrier, P> {
 public:
  using GroupSignals<Threads, Barrier, P>::GroupSignals;

  template <class T>
  static constexpr int kVectorsOf = GroupSignals<Threads, Barrier, P>::template kVectorsOf<T>;

  template <class Q, class T>
  __device__ void ll_put(Symm<Q> to, const T* from, Size count, Epoch epoch, int pe) {
    for (const Range tile : this->template tiles<T>({0, count})) {
      Raw<T, kVectorsOf<T>> raw;
      this->place_.load(raw, from, tile);
      put_packets(to.on(pe) + packets_for<Q>(tile.begin * Size{sizeof(T)}), tile.size(), raw, epoch);
    }
  }
  template <class T, class Q, class A>
  __device__ void ll_put_fragment(Symm<Q> to, const Fragment<A, kWidth<T>, kVectorsOf<T>>& values, Epoch epoch,
                                  int pe) {
    put_packets(to.on(pe), values.size(), Raw<T, kVectorsOf<T>>::of(values), epoch);
  }
  template <class T, class Q, class A>
  __device__ void ll_put_peers(Symm<Q> to, const Fragment<A, kWidth<T>, kVectorsOf<T>>& values, Epoch epoch) {
    const auto raw = Raw<T, kVectorsOf<T>>::of(values);
    int other = this->pe();
#pragma unroll 1
    for (int step = 1; step < this->num_pes(); ++step) {
      other = other + 1 < this->num_pes() ? other + 1 : 0;
      put_packets(to.on(other), values.size(), raw, epoch);
    }
  }
  template <class A, class T, class Q>
  __device__ auto ll_get(const Q* from, Size count, Epoch epoch) {
    static_assert(kIsPacket<Q>, "a kernel's Packet says which packets it uses");
    Arrival<Q, T, Threads> arrival[1] = {{from, count, epoch, this->thread_}};
    receive(this->context_, epoch, arrival, 1);
    return arrival[0].raw().template as<A>(count, this->place_.template valid<T>(count));
  }
  /// The packets of several PEs are polled together, in one trip to memory.
  template <class T, class A, class Q, class F>
  __device__ void ll_get_all(const Fragment<A, kWidth<T>, kVectorsOf<T>>& own, const Q* from, Size stride, Epoch epoch,
                             const F& on_pe) {
    static_assert(kIsPacket<Q>, "a kernel's Packet says which packets it uses");
    constexpr int kAtOnce = Arrival<Q, T, Threads>::kAtOnce;
#pragma unroll 1
    for (int first = 0; first < this->num_pes(); first += kAtOnce) {
      Arrival<Q, T, Threads> arrivals[kAtOnce];
      unsigned wanted = 0;
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        arrivals[u] = {from + (first + u) * stride, own.size(), epoch, this->thread_};
        if (first + u < this->num_pes() && first + u != this->pe()) wanted |= 1U << u;
      }
      receive(this->context_, epoch, arrivals, wanted);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (first + u >= this->num_pes()) break;
        on_pe(first + u, first + u == this->pe() ? own : arrivals[u].raw().template as<A>(own.size(), own.valid()));
      }
    }
  }

  /// Each warp waits by itself for the sums of all parts. So there is no barrier behind the wait.
  template <int W, int V>
  __device__ float sum_of_parts(const Fragment<float, W, V>& values, LLPacket* packets, int part, int parts,
                                Epoch epoch) {
    put_part(packets, part, this->sum(values), epoch);
    float total = 0;
    each_part(packets, parts, epoch, [&](float value) { total += value; });
    return sum_of_warp(total);
  }
  template <int W, int V>
  __device__ float greatest_of_parts(const Fragment<float, W, V>& values, LLPacket* packets, int part, int parts,
                                     Epoch epoch) {
    put_part(packets, part, this->greatest(values), epoch);
    float most = 0;
    each_part(packets, parts, epoch, [&](float value) { most = apply(ReduceOp::kMax, most, value); });
    return greatest_of_warp(most);
  }

  /// Waits for packets and forwards them unchanged.
  __device__ void ll_forward(Symm<LLPacket> to, const LLPacket* from, Size packets, Epoch epoch, int pe) {
    const auto flag = static_cast<std::uint32_t>(epoch);
    for (Size i = Size{2} * this->thread_; i < packets; i += Size{2} * Threads) {
      const bool both = i + 1 < packets;
      const PacketPair got = poll_packets(this->context_, from + i, flag, both);
      if (both)
        store_packets(to.on(pe) + i, got);
      else
        store_relaxed(reinterpret_cast<std::uint64_t*>(to.on(pe) + i), got.packet[0]);
    }
  }

  __device__ void ll_forward(Symm<LL128Line> to, const LL128Line* from, Size packets, Epoch epoch, int pe) {
    constexpr Size kAtOnce = Threads / 8;
    for (Size first = 0; first < packets; first += kAtOnce) {
      const Size bytes = min(kAtOnce, packets - first) * Size{sizeof(LL128Line::data)};
      Arrival<LL128Line, std::byte, Threads> arrival[1] = {{from + first, bytes, epoch, this->thread_}};
      receive(this->context_, epoch, arrival, 1);
      arrival[0].pass_on(to.on(pe) + first);
    }
  }

 private:
  /// Fills a part's line with its value. A line has one writer and is written at once, because its readers poll it:
  /// with several writers of a line, norms took 0.7 us longer.
  __device__ void put_part(LLPacket* packets, int part, float value, Epoch epoch) const {
    if (2 * this->thread_ >= kPartPackets) return;
    const std::uint64_t flag = static_cast<std::uint64_t>(static_cast<std::uint32_t>(epoch)) << 32;
    const std::uint64_t packet = flag | __float_as_uint(value);
    store_packets(packets + part * kPartPackets + 2 * this->thread_, {{packet, packet}});
  }
  /// Waits for the values of all parts. Calls f(value) for those that this lane takes.
  template <class F>
  __device__ void each_part(const LLPacket* packets, int parts, Epoch epoch, const F& f) const {
    for (int i = this->thread_ % 32; i < parts; i += 32) {
      const PacketPair got = poll_packets(this->context_, packets + i * kPartPackets, static_cast<std::uint32_t>(epoch),
                                          /*both=*/false);
      f(__uint_as_float(static_cast<std::uint32_t>(got.packet[0])));
    }
    __syncwarp();
  }

  template <class Q>
  static constexpr bool kIsPacket = std::is_same_v<P, Q>;
  template <class Q, class T>
  __device__ void put_packets(Q* to, Size count, const Raw<T, 1>& raw, Epoch epoch) const {
    static_assert(kIsPacket<Q>, "a kernel's Packet says which packets it uses");
    Arrival<Q, T, Threads>::put(to, count, raw, epoch, this->thread_);
  }
};

}  // namespace tandem::cuda
