#pragma once
/// Every PE's choices to all PEs, and the rows of each expert here in the order (PE from this one on, token, choice).
///
/// No PE counts before it sends, since choices travel as packets to a place of their own. Each block that ranks the
/// rows of an expert reads the packets itself, those of several PEs at once. Ranks are prefix sums, so the order never
/// depends on timing.

#include "base/gpu_kernel.h"
#include "collectives/experts/expert_rows.h"
#include "collectives/experts/own_choices.h"

namespace tandem::kernels {

struct Route {
  using Packet = LL128Line;
  using Args = RouteArgs;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = 512;

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.complete();
    const Size tiles = 2 * setup.pes() * a.tiles * kRouteLines;
    a.first = setup.template symmetric<LL128Line>(2 * setup.pes() * a.first_lines, "first choices");
    if (a.tiles > 1) a.rest = setup.template symmetric<LL128Line>(tiles, "choices");
    a.lines = setup.template symmetric<LL128Line>(tiles, "weights");
    a.kept = most_kept(a.routing);
    a.found = reinterpret_cast<std::int32_t*>(setup.template local<Index>(a.routing.experts_here * a.kept, "found"));
    a.met = setup.signals(setup.blocks(), "met");
    a.epochs = setup.epochs();
  }

  // Two slots suffice. A PE that has ended call e has every PE's message of that call. It is sent after the end of call
  // e - 1 there.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    const int experts = a.routing.experts_here;
    OwnChoices::send(block, a, epoch);
    if (block.index() >= experts) return receive_all(block, a, epoch, block.index() - experts, block.count() - experts);
    for (int expert = block.index(); expert < experts; expert += block.count()) {
      ExpertRows rows(block, a, epoch, expert);
      rows.find();
      if (a.align == 1) rows.place();
    }
    if (block.count() <= experts) receive_all(block, a, epoch, block.index(), block.count());
    if (a.align == 1) return;
    meet(block, a, epoch, min(block.count(), experts));
    for (int expert = block.index(); expert < experts; expert += block.count())
      ExpertRows(block, a, epoch, expert).place();
  }

  /// The part of a member of some blocks, which are numbered from 0 on. Each peer's choices have blocks of their own,
  /// or one block receives those of several peers.
  template <class Block>
  TANDEM_DEVICE static void receive_all(Block& block, const Args& a, Epoch epoch, int member, int members) {
    const int peers = block.num_pes() - 1;
    if (peers == 0) return;
    for (int step = member % peers; step < peers; step += members)
      receive(block, a, epoch, (block.pe() + 1 + step) % block.num_pes(), member / peers,
              members <= peers ? 1 : (members - 1 - step) / peers + 1);
  }

 private:
  /// The blocks that rank rows. Each of them then sees the earlier writes of the others.
  template <class Block>
  TANDEM_DEVICE static void meet(Block& block, const Args& a, Epoch value, Size blocks) {
    block.notify(a.met + block.index(), value, block.pe());
    block.wait(a.met, blocks, value);
  }

  /// A peer's choices in memory, for dispatches and combinations.
  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, Epoch epoch, int pe, int part, int parts) {
    const Routing& r = a.routing;
    const int step = pe < block.pe() ? pe - block.pe() + r.pes : pe - block.pe();
    const LL128Line* const first = a.first_at(epoch, step).local();
    const auto tokens = block.template ll_get<std::int32_t, Index>(first, 1, epoch).map([](std::int32_t header) {
      return header_of(header);
    });
    if (part == 0) block.store(r.tokens() + pe, {0, 1}, tokens);
    const Size choices = Size{block.sum(tokens)} * r.top_k;
    for (Size i = part; i * kRouteTile < kHeaderWords + choices; i += parts) {
      const Range words{i * kRouteTile, i == 0 ? a.first_words : min((i + 1) * kRouteTile, kHeaderWords + choices)};
      const LL128Line* const from = i == 0 ? first : a.rest_at(epoch, pe, i).local();
      block.store(r.message(pe), words, block.template ll_get<std::int32_t, Index>(from, words.size(), epoch));
    }
    for_tiles(part, parts, choices, [&](Size i, Range tile) {
      block.store(r.weights(pe), tile,
                  block.template ll_get<float, float>(a.weights_at(epoch, pe, i).local(), tile.size(), epoch));
    });
  }
};

TANDEM_GPU_KERNEL(Route, 512);

}  // namespace tandem::kernels
