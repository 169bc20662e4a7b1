#pragma once
/// Every PE's choices to all PEs, and the rows of each expert here in the order (PE from this one on, token, choice).
///
/// No PE counts before it sends, since choices travel as packets to a place of their own. Few choices are read by every
/// block, which ranks those of one expert and waits for no other block. Many choices are ranked in tiles by expert, and
/// the counts of all tiles give each tile its first rows. Ranks are prefix sums, so the order never depends on timing.

#include "base/gpu_kernel.h"
#include "collectives/experts/choices/expert_rows.h"
#include "collectives/experts/choices/own_choices.h"
#include "collectives/experts/choices/peer_choices.h"
#include "collectives/experts/choices/tile_ranks.h"

namespace tandem::kernels {

struct Route {
  using Packet = LL128Line;
  using Args = RouteArgs;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = 512;

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.complete();
    const Size tiles = setup.pes() * a.tiles;
    a.first = setup.template symmetric<LL128Line>(2 * setup.pes() * a.first_lines, "first choices");
    if (a.tiles > 1) a.rest = setup.template symmetric<LL128Line>(2 * tiles * kRouteLines, "choices");
    a.lines = setup.template symmetric<LL128Line>(2 * tiles * kRouteLines, "weights");
    a.epochs = setup.epochs();
    a.met = setup.signals(setup.blocks(), "met");
    if (a.is_at_once) {
      a.kept = most_kept(a.routing);
      a.found = reinterpret_cast<std::int32_t*>(setup.template local<Index>(a.routing.experts_here * a.kept, "found"));
      return;
    }
    a.counts = reinterpret_cast<std::int32_t*>(setup.template local<Index>(tiles * a.routing.experts_here, "counts"));
    a.ranks = reinterpret_cast<std::int32_t*>(setup.template local<Index>(tiles * kRouteTile, "ranks"));
  }

  // Two slots suffice. A PE that has ended call e has every PE's message of that call. It is sent after the end of call
  // e - 1 there.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    OwnChoices::send(block, a, epoch);
    if (a.is_at_once)
      place_experts(block, a, epoch);
    else
      TileRanks::place(block, a, epoch);
  }

 private:
  /// Blocks without an expert receive the peers' choices meanwhile. Aligned experts wait for the counts of all.
  template <class Block>
  TANDEM_DEVICE static void place_experts(Block& block, const Args& a, Epoch epoch) {
    const int experts = a.routing.experts_here;
    if (block.index() >= experts)
      return PeerChoices::receive_peers(block, a, epoch, block.index() - experts, block.count() - experts);
    for (int expert = block.index(); expert < experts; expert += block.count()) {
      ExpertRows rows(block, a, epoch, expert);
      rows.find();
      if (a.align == 1) rows.place();
    }
    if (block.count() <= experts) PeerChoices::receive_peers(block, a, epoch, block.index(), block.count());
    if (a.align == 1) return;
    block.notify(a.met + block.index(), epoch, block.pe());
    block.wait(a.met, min(block.count(), experts), epoch);
    for (int expert = block.index(); expert < experts; expert += block.count())
      ExpertRows(block, a, epoch, expert).place();
  }
};

TANDEM_GPU_KERNEL(Route, 512);

}  // namespace tandem::kernels
