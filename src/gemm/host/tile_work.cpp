#include "gemm/host/tile_work.h"

#include <fmt/format.h>

#include <vector>

#include "gemm/contract/destination.h"
#include "gemm/contract/epilogue.h"
#include "gemm/contract/groups.h"
#include "gemm/contract/scales.h"
#include "gemm/host/host_gemm.h"
#include "gemm/host/scaled_tile.h"
#include "tandem/error.h"

namespace tandem {

namespace {

void require(bool holds, const char* field, Size given, const char* allowed) {
  if (!holds) throw InvalidArgument(fmt::format("gemm: {} is {}, allowed: {}", field, given, allowed));
}

struct CheckedPanels {
  const Gemm& gemm;
  int count;
  GemmPanel operator[](int number) const {
    check_panel(gemm, gemm.groups.panels[number], number, count);
    return gemm.groups.panels[number];
  }
};

}  // namespace

void check_gemm_fields(const Gemm& gemm, int most_sms) {
  require(gemm.m >= 0, "m", gemm.m, "0 or more");
  require(gemm.n >= 0, "n", gemm.n, "0 or more");
  require(gemm.k >= 0, "k", gemm.k, "0 or more");
  require(gemm.tile_m >= 1, "tile_m", gemm.tile_m, "1 or more");
  require(gemm.tile_n >= 1, "tile_n", gemm.tile_n, "1 or more");
  require(gemm.sms >= 0 && gemm.sms <= most_sms, "sms", gemm.sms, "0 (all) to the machine's SMs");
  const bool has_chunks = gemm.order != TileOrder::kRowMajor || gemm.own_a != nullptr ||
                          (gemm.gate.words != nullptr && gemm.groups.count == 0) ||
                          gemm.destination.scatter() != nullptr || gemm.destination.ring() != nullptr;
  require(!has_chunks || gemm.rows.rows == gemm.m, "rows.rows", gemm.rows.rows, "m");
  require(gemm.rows.shards >= 1, "rows.shards", gemm.rows.shards, "1 or more");
  require(gemm.rows.splits >= 1, "rows.splits", gemm.rows.splits, "1 or more");
  require(gemm.node_size >= 1, "node_size", gemm.node_size, "1 or more");
  check_destination(gemm);
  check_epilogue(gemm);
  check_groups(gemm);
}

GemmTiles::GemmTiles(const Gemm& gemm)
    : gemm_(&gemm),
      sequence_(gemm),
      order_(gemm.groups.count == 0 ? PanelOrder{} : PanelOrder::of(gemm.groups, gemm.n, gemm.tile_n, 1)),
      count_(gemm.groups.count == 0 ? sequence_.tiles() : 0) {
  if (gemm.groups.count == 0) return;
  panels_ = *gemm.groups.panel_count;
  check_panel_count(gemm, panels_);
  count_ = Size{panels_} * order_.columns;
}

GemmTile GemmTiles::tile(Size i, TileSequence::Place& from) const {
  if (gemm_->groups.count == 0) return sequence_.tile(i, from);
  const CheckedPanels panels{*gemm_, panels_};
  const PanelOrder::Place place = order_.place(static_cast<int>(i), 0, panels, panels_);
  const GemmPanel panel = panels[place.panel];
  const Size col = Size{place.column} * gemm_->tile_n;
  return {{panel.row, panel.row + panel.rows},
          {col, min(col + gemm_->tile_n, gemm_->n)},
          panel.group,
          place.chunk,
          panel.word};
}

Size most_tiles(const Gemm& gemm) {
  if (gemm.groups.count == 0) return TileSequence(gemm).tiles();
  return Size{gemm.groups.most_panels} * ceil_div(gemm.n, gemm.tile_n);
}

const std::byte* TileWork::a_row(Size row) const {
  const Size bytes = gemm_.k * static_cast<Size>(size_of(gemm_.type));
  if (gemm_.groups.a_rows != nullptr) {
    const Size of_a = gemm_.groups.a_rows[row];
    check_a_row(gemm_, row, of_a);
    return of_a < 0 ? nullptr : static_cast<const std::byte*>(gemm_.a) + of_a * bytes;
  }
  if (gemm_.own_a != nullptr && gemm_.rows.owner_of(row) == gemm_.me)
    return static_cast<const std::byte*>(gemm_.own_a) + (row - gemm_.rows.shard(gemm_.me).begin) * bytes;
  return static_cast<const std::byte*>(gemm_.a) + row * bytes;
}

const std::byte* TileWork::b(const GemmTile& tile) const {
  const Size column = gemm_.b_layout == BLayout::kNxK ? gemm_.k : 1;
  return static_cast<const std::byte*>(gemm_.b) +
         (tile.group * gemm_.n * gemm_.k + tile.cols.begin * column) * static_cast<Size>(size_of(gemm_.type));
}

Size TileWork::end_of_a(Size row, Size end) const {
  if (gemm_.groups.a_rows != nullptr) return row + 1;
  return gemm_.own_a != nullptr ? min(end, gemm_.rows.shard(gemm_.rows.owner_of(row)).end) : end;
}

int TileWork::ring_slot(const GemmTile& tile) const {
  return gemm_.rows.slot(gemm_.rows.owner_of(tile.rows.begin), gemm_.rows.part_of(tile.rows.begin));
}

Epoch TileWork::ring_arrivals(const GemmTile& tile) const {
  return static_cast<Epoch>(
      gemm_.tiles_of_chunk(gemm_.rows.owner_of(tile.rows.begin), gemm_.rows.part_of(tile.rows.begin)));
}

const std::byte* TileWork::ring_row(const GemmTile& tile, Size row) const {
  return gemm_.destination.ring()->received + ((row_in_blocks(tile.rows.begin) + row) * gemm_.n + tile.cols.begin) *
                                                  static_cast<Size>(size_of(gemm_.out_type));
}

Size TileWork::row_in_blocks(Size row) const {
  const int owner = gemm_.rows.owner_of(row);
  return owner * gemm_.rows.shard_rows() + row - gemm_.rows.shard(owner).begin;
}

void TileWork::multiply(const GemmTile& tile, std::byte* result) const {
  const Size m = tile.rows.size();
  const Size n = tile.cols.size();
  std::vector<float> product(static_cast<std::size_t>(m * n));
  const bool rows_of_b = gemm_.b_layout == BLayout::kNxK;
  for (Size row = tile.rows.begin, end = row; row < tile.rows.end; row = end) {
    end = end_of_a(row, tile.rows.end);
    const std::byte* const a = a_row(row);
    if (gemm_.k == 0 || a == nullptr) continue;  // an empty sum is zero
    float* const sums = product.data() + (row - tile.rows.begin) * n;
    if (gemm_.scales.blocks)
      multiply_scaled(gemm_, a, b(tile), row, end - row, tile.cols, tile.group, sums);
    else
      host_gemm_tile(a, gemm_.k, b(tile), rows_of_b ? gemm_.k : gemm_.n, sums, n, end - row, n, gemm_.k, gemm_.type,
                     gemm_.b_layout);
  }
  apply_epilogue(gemm_, tile.rows, tile.cols, product.data(), tile.group);
  if (gemm_.scales.out != nullptr)
    quantise_blocks(gemm_, tile.rows,
                    {columns_after(gemm_.activation, tile.cols.begin), columns_after(gemm_.activation, tile.cols.end)},
                    product.data());
  dispatch(gemm_.out_type, [&]<class T>() {
    T* out = reinterpret_cast<T*>(result);
    if (adds_to_ring(tile))
      for (Size i = 0; i < m; ++i) {
        const T* const begun = reinterpret_cast<const T*>(ring_row(tile, i));
        for (Size j = 0; j < n; ++j) product[static_cast<std::size_t>(i * n + j)] += convert<float>(begun[j]);
      }
    const bool in_ring = gemm_.destination.ring() != nullptr;
    if (in_ring && gemm_.rows.owner_of(tile.rows.begin) == gemm_.me)  // the sums end here
      for (float& sum : product) sum = activate(gemm_.activation, sum);
    for (Size i = 0; i < m * columns_after(gemm_.activation, n); ++i)
      out[i] = convert<T>(product[static_cast<std::size_t>(i)]);
  });
}

std::byte* TileWork::row_in(std::byte* c, Size first_row, const GemmTile& tile, Size row) const {
  const Size element = (first_row + row) * gemm_.n + tile.cols.begin;
  return c + columns_after(gemm_.activation, element) * static_cast<Size>(size_of(gemm_.out_type));
}

TileWork::Destination TileWork::destination(const GemmTile& tile) const {
  const Size row = tile.rows.begin;
  auto* const c = static_cast<std::byte*>(gemm_.destination.c());
  if (gemm_.groups.count > 0) {
    const Signals& words = gemm_.destination.local()->notify.words;
    return {c, row, words ? words.on(gemm_.me) + tile.chunk : nullptr, nullptr};
  }
  const int owner = gemm_.rows.owner_of(row);
  const int part = gemm_.rows.part_of(row);
  const Size in_shard = row - gemm_.rows.shard(owner).begin;
  const int block = gemm_.block_at_collector(owner);
  const auto here = [&](const Signals& words) {
    return words ? words.on(gemm_.me) + gemm_.rows.slot(owner, part) : nullptr;
  };
  const auto at_collector = [&](const Signals& words) {
    return words ? words.on(gemm_.collector(owner)) + gemm_.rows.slot(block, part) : nullptr;
  };
  if (const GemmRing* const ring = gemm_.destination.ring()) {
    if (owner == gemm_.me) return {c, in_shard, here(ring->notify), ring->own_copy};
    return {ring->forwarded, row_in_blocks(row), ring->forwarded_tiles + gemm_.rows.slot(owner, part), nullptr};
  }
  if (const GemmScatter* const scatter = gemm_.destination.scatter())
    return {scatter->blocks.on(gemm_.collector(owner)), block * gemm_.rows.shard_rows() + in_shard,
            at_collector(scatter->notify), nullptr};
  const GemmLocal* const local = gemm_.destination.local();
  if (local == nullptr) return {c, row, nullptr, nullptr};
  return {c, row, local->notify.local ? here(local->notify.words) : at_collector(local->notify.words), nullptr};
}

}  // namespace tandem
