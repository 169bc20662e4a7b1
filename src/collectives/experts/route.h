#pragma once
/// Every PE's choices to all PEs, and the rows of each expert here in the order (PE from this one on, token, choice).
///
/// Nobody counts before sending: choices travel as packets to a place of their own. A block ranks the choices of one
/// expert at a time by prefix sums, so the order never depends on timing.

#include "base/gpu_kernel.h"
#include "collectives/experts/expert_rows.h"

namespace tandem::kernels {

struct Route {
  using Packet = LL128Line;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = 512;
  static constexpr Size kTile = kRouteTile;
  static constexpr Size kLines = packets_for<LL128Line>(kTile * 4);

  using Args = RouteArgs;

  TANDEM_DEVICE static Size tiles(const Routing& routing) { return ceil_div(routing.choices(), kTile); }
  TANDEM_DEVICE static Size lines_of_pe(const Routing& routing) { return 1 + 2 * tiles(routing) * kLines; }

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.lines = setup.template symmetric<LL128Line>(2 * setup.pes() * lines_of_pe(a.routing), "choices");
    a.met = setup.signals(setup.blocks(), "met");
    a.epochs = setup.epochs();
  }

  // Two slots suffice. A PE that has ended call e has every PE's number of tokens of that call. It is sent after the
  // end of call e - 1 there.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    send_own(block, a, epoch);
    receive_all(block, a, epoch);
    meet(block, a, 2 * epoch - 1);
    for (int expert = block.index(); expert < a.routing.experts_here; expert += block.count())
      ExpertRows(block, a, expert).count();
    meet(block, a, 2 * epoch);
    for (int expert = block.index(); expert < a.routing.experts_here; expert += block.count())
      ExpertRows(block, a, expert).place();
  }

 private:
  TANDEM_DEVICE static Symm<LL128Line> slot(const Args& a, Epoch epoch, int owner) {
    return a.lines + (static_cast<Size>(epoch % 2) * a.routing.pes + owner) * lines_of_pe(a.routing);
  }
  TANDEM_DEVICE static Size ids_at(Size tile) { return 1 + tile * kLines; }
  TANDEM_DEVICE static Size weights_at(const Args& a, Size tile) { return ids_at(tiles(a.routing) + tile); }

  /// Calls f(tile's number, choices) for every `step`th tile of a PE's choices.
  template <class F>
  TANDEM_DEVICE static void for_tiles(Size first, Size step, Size choices, const F& f) {
    for (Size i = first; i * kTile < choices; i += step) f(i, Range{i * kTile, min((i + 1) * kTile, choices)});
  }

  /// All blocks of this PE. Each block then sees the earlier writes of the others.
  template <class Block>
  TANDEM_DEVICE static void meet(Block& block, const Args& a, Epoch value) {
    block.notify(a.met + block.index(), value, block.pe());
    block.wait(a.met, block.count(), value);
  }

  template <class Block>
  TANDEM_DEVICE static void send_own(Block& block, const Args& a, Epoch epoch) {
    const Routing& r = a.routing;
    const int me = block.pe();
    Size tokens = a.tokens;
    if (a.tokens_on_device != nullptr) tokens = max(0, min(block.load_scalar(a.tokens_on_device), a.tokens));
    const Symm<LL128Line> to = slot(a, epoch, me);
    if (block.index() == 0) {
      block.store_scalar(r.tokens() + me, static_cast<std::int32_t>(tokens));
      block.sync();
      block.template ll_put_peers<std::int32_t>(to, block.template load<std::int32_t>(r.tokens() + me, {0, 1}), epoch);
    }
    for_tiles(block.index(), block.count(), tokens * r.top_k, [&](Size i, Range tile) {
      // -2 stands for an id that is refused. Ids of 64 bits have another layout, so they go through memory.
      if (a.long_ids)
        keep_ids<std::int64_t>(block, a, tile);
      else
        keep_ids<std::int32_t>(block, a, tile);
      block.sync();
      const auto kept = block.template load<std::int32_t>(r.ids(me), tile);
      note_refused(block, a, tile, kept.map([](std::int32_t id) { return id == -2 ? 1 : 0; }));
      const auto ids = kept.map([](std::int32_t id) { return id < 0 ? -1 : id; });
      block.store(r.ids(me), tile, ids);
      block.store(r.places(me), tile, ids.map([](std::int32_t) { return -1; }));
      block.template ll_put_peers<std::int32_t>(to + ids_at(i), ids, epoch);
      const auto weights = a.weights == nullptr ? ids.template convert<float>().map([](float) { return 1.0F; })
                                                : block.template load<float>(a.weights, tile);
      block.store(r.weights(me), tile, weights);
      block.template ll_put_peers<float>(to + weights_at(a, i), weights, epoch);
    });
  }

  template <class Id, class Block>
  TANDEM_DEVICE static void keep_ids(Block& block, const Args& a, Range tile) {
    const Id experts = a.experts;
    const auto* const ids = static_cast<const Id*>(a.ids);
    for (const Range part : block.template tiles<Id>(tile))
      block.store(a.routing.ids(block.pe()), part, block.template load<Id>(ids, part).map([experts](Id id) {
        return id >= -1 && id < experts ? id : Id{-2};
      }));
  }

  template <class Block, class Values>
  TANDEM_DEVICE static void note_refused(Block& block, const Args& a, Range tile, const Values& is_refused) {
    if (block.sum(is_refused) == 0) return;
    const auto is_first =
        is_refused.zip(block.exclusive_sum(is_refused),
                       [](std::int32_t refused, std::int32_t before) { return refused == 1 && before == 0 ? 1 : 0; });
    const Size choice = tile.begin + block.sum(is_first.zip(numbers_of(block, is_first),
                                                            [](std::int32_t one, std::int32_t i) { return one * i; }));
    note(block, a, choice + 1,
         a.long_ids ? block.load_scalar(static_cast<const std::int64_t*>(a.ids) + choice)
                    : block.load_scalar(static_cast<const std::int32_t*>(a.ids) + choice));
  }

  /// Each peer's choices have blocks of their own, or one block receives those of several peers.
  template <class Block>
  TANDEM_DEVICE static void receive_all(Block& block, const Args& a, Epoch epoch) {
    const int peers = block.num_pes() - 1;
    if (peers == 0) return;
    for (int step = block.index() % peers; step < peers; step += block.count())
      receive(block, a, epoch, (block.pe() + 1 + step) % block.num_pes(), block.index() / peers,
              block.count() <= peers ? 1 : (block.count() - 1 - step) / peers + 1);
  }

  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, Epoch epoch, int pe, int part, int parts) {
    const Routing& r = a.routing;
    const LL128Line* const from = slot(a, epoch, pe).local();
    const auto header = block.template ll_get<std::int32_t, std::int32_t>(from, 1, epoch);
    if (part == 0) block.store(r.tokens() + pe, {0, 1}, header);
    for_tiles(part, parts, Size{block.sum(header)} * r.top_k, [&](Size i, Range tile) {
      const auto ids = block.template ll_get<std::int32_t, std::int32_t>(from + ids_at(i), tile.size(), epoch);
      block.store(r.ids(pe), tile, ids);
      block.store(r.places(pe), tile, ids.map([](std::int32_t) { return -1; }));
      block.store(r.weights(pe), tile,
                  block.template ll_get<float, float>(from + weights_at(a, i), tile.size(), epoch));
    });
  }
};

TANDEM_GPU_KERNEL(Route, 512);

}  // namespace tandem::kernels
