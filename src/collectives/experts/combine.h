#pragma once
/// Weighted sums of what the experts here made of each token, to the token's owner, which adds the PEs' sums in order.

#include "base/gpu_kernel.h"
#include "collectives/experts/row_lines.h"

namespace tandem::kernels {

template <class T>
struct CombineRows {
  using Packet = LL128Line;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = RowLines::kThreads;
  static constexpr int kBlocksPerSm = RowLines::kBlocksPerSm;

  struct Args {
    const T* y = nullptr;      // [row of an expert][hidden]
    const T* add = nullptr;    // [token][hidden], or null
    T* out = nullptr;          // [token][hidden]
    const T* zeros = nullptr;  // of a piece, from the host
    Size hidden = 0;
    Routing routing;
    RowLines lines;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.lines.epochs);
    const Routing& r = a.routing;
    a.lines.announce(block, epoch);
    for (const int pe : block.peers_from_self())
      a.lines.for_own(block, block.load_scalar(r.tokens() + pe), [&](Size token, Size i) {
        const auto places = load_choices(block, r.places(pe) + token * r.top_k, r.top_k, -1);
        if (any_here(places))
          block.template ll_put_fragment<T>(a.lines.at(r, epoch, block.pe(), pe, i),
                                            local_sum(block, a, places, pe, token, i), epoch, pe);
      });
    a.lines.for_own(block, block.load_scalar(r.tokens() + block.pe()),
                    [&](Size token, Size i) { add_up(block, a, epoch, token, i); });
    a.lines.await_all(block, epoch);
  }

 private:
  template <class Block>
  using Values = decltype(std::declval<Block&>().template load<float>(static_cast<const T*>(nullptr), Range{}));

  TANDEM_DEVICE static Range elements(const Args& a, Size i) {
    const Range bytes = a.lines.bytes(i);
    return {bytes.begin / Size{sizeof(T)}, bytes.end / Size{sizeof(T)}};
  }

  template <class Block>
  TANDEM_DEVICE static Values<Block> zeros(Block& block, const Args& a, Size i) {
    return block.template load<float>(a.zeros, {0, elements(a, i).size()});
  }

  /// Adds in the order of the token's choices. One of its experts is here.
  template <class Block>
  TANDEM_DEVICE static Values<Block> local_sum(Block& block, const Args& a, const Choices<std::int32_t>& places, int pe,
                                               Size token, Size i) {
    const Routing& r = a.routing;
    const auto weights = load_choices(block, static_cast<const float*>(r.weights(pe) + token * r.top_k), r.top_k, 0.0F);
    Values<Block> sum;
    bool is_first = true;
    for (int k = 0; k < r.top_k; ++k) {
      if (places.of[k] < 0) continue;
      const auto values = block.template load<float>(a.y + places.of[k] * a.hidden, elements(a, i)) * weights.of[k];
      sum = is_first ? values.copy() : sum + values;
      is_first = false;
    }
    // A token whose experts have no row left counts as zeros: its owner waits for a sum.
    return is_first ? zeros(block, a, i) : sum.copy();
  }

  template <class Block>
  TANDEM_DEVICE static void add_up(Block& block, const Args& a, Epoch epoch, Size token, Size i) {
    const Routing& r = a.routing;
    const int me = block.pe();
    const Range piece = elements(a, i);
    const auto ids = load_choices(block, r.ids(me) + token * r.top_k, r.top_k, -1);
    const std::uint64_t pes = pes_of(r, ids);
    Values<Block> total;
    bool is_first = true;
    const auto add = [&](const Values<Block>& values) {
      total = is_first ? values.copy() : total + values;
      is_first = false;
    };
    for (int pe = 0; pe < r.pes; ++pe) {
      if ((pes >> pe & 1U) == 0) continue;
      if (pe != me) {
        add(block.template ll_get<float, T>(a.lines.at(r, epoch, pe, me, i).local(), piece.size(), epoch));
        continue;
      }
      const auto places = load_choices(block, r.places(me) + token * r.top_k, r.top_k, -1);
      if (any_here(places))
        add(local_sum(block, a, places, me, token, i).map([](float x) { return convert<float>(convert<T>(x)); }));
    }
    if (a.add != nullptr) add(block.template load<float>(a.add + token * a.hidden, piece));
    if (is_first) add(zeros(block, a, i));
    block.store(a.out + token * a.hidden, piece, total);
  }
};

TANDEM_GPU_KERNEL(CombineRows<bf16>, 128);
TANDEM_GPU_KERNEL(CombineRows<f16>, 128);

}  // namespace tandem::kernels
