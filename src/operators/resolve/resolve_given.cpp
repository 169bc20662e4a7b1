/// The sources of options before the rules: the caller, the tuner's cache, and the table of measured choices.

#include <fmt/format.h>

#include <cstdlib>

#include "operators/resolve/resolver.h"
#include "operators/resolve/tuned.h"
#include "tandem/advanced/operator_tuning.h"

namespace tandem::ops {

namespace {

/// A chain pushes, in one order.
bool allows_chain(const OperatorOptions& o) {
  return o.direction == Direction::kPush && (o.order.empty() || o.order == "peers_first");
}

}  // namespace

void Resolver::take_callers() {
  const OperatorOptions open;
  const auto mark = [&](Choosable option, bool is_given) {
    if (is_given) origins_.set(option, OptionSource::kCaller, "");
  };
  mark(Choosable::kForm, o_.form != open.form);
  mark(Choosable::kTransport, o_.copy_by.has_value());
  mark(Choosable::kDirection, o_.direction != open.direction);
  mark(Choosable::kReduction, o_.reduction.has_value());
  mark(Choosable::kShots, o_.shots != open.shots);
  mark(Choosable::kSplits, o_.splits != open.splits);
  mark(Choosable::kOrder, !o_.order.empty());
  mark(Choosable::kTile, o_.tile_m != open.tile_m || o_.tile_n != open.tile_n);
  mark(Choosable::kPanelGroup, o_.panel_group != open.panel_group);
  mark(Choosable::kCommunicationSms, o_.communication_sms >= 0);
  mark(Choosable::kOutType, o_.out_type.has_value());
}

/// An entry is taken as a whole; what it leaves open itself goes on to the next source.
void Resolver::take_cached() {
  const std::optional<OperatorOptions> tuned = find_agreed(world_, op_, o_);
  if (!tuned) return;
  const std::string file = std::getenv(kOperatorCacheVariable);
  const auto take = [&]<class T>(Choosable option, T OperatorOptions::*field, bool has_value) {
    if (has_value) offer(option, field, (*tuned).*field, OptionSource::kCache, file);
  };
  take(Choosable::kForm, &OperatorOptions::form, true);
  take(Choosable::kTransport, &OperatorOptions::copy_by, tuned->copy_by.has_value());
  take(Choosable::kDirection, &OperatorOptions::direction, true);
  take(Choosable::kReduction, &OperatorOptions::reduction, tuned->reduction.has_value());
  take(Choosable::kShots, &OperatorOptions::shots, tuned->shots > 0);
  take(Choosable::kSplits, &OperatorOptions::splits, tuned->splits > 0);
  take(Choosable::kOrder, &OperatorOptions::order, !tuned->order.empty());
  o_.tile_m = tuned->tile_m;
  take(Choosable::kTile, &OperatorOptions::tile_n, true);
  take(Choosable::kCommunicationSms, &OperatorOptions::communication_sms, tuned->communication_sms >= 0);
}

void Resolver::limit_tile() {
  if (place_.on_gpus && o_.block_scales) {
    const OperatorOptions only;  // a tuned tile may be another one
    o_.tile_m = only.tile_m;
    o_.tile_n = only.tile_n;
    origins_.set(Choosable::kTile, OptionSource::kRule, "GPUs have one tile for scales of blocks");
    return;
  }
  if (!place_.on_gpus || o_.type != DType::kE4M3 || o_.tile_n <= kNarrowFp8TileN) return;
  const int limited = has_fp8_tiles() && o_.tile_n >= kWideFp8TileN ? kWideFp8TileN : kNarrowFp8TileN;
  if (o_.tile_n == limited) return;
  o_.tile_n = limited;
  origins_.set(Choosable::kTile, OptionSource::kRule, "GPUs have no such kernel of fp8 with wider tiles");
}

void Resolver::take_fp8_tile() {
  const Size rows = narrow_fp8_rows(place_, op_, o_);
  const bool is_narrow = o_.m <= rows;
  offer(Choosable::kTile, &OperatorOptions::tile_n, is_narrow ? kNarrowFp8TileN : kWideFp8TileN, OptionSource::kRule,
        "wide tiles of fp8, unless they leave half of the SMs idle");
  if (!is_narrow) result_.narrow_rows = rows;
}

bool Resolver::has_fp8_tiles() const {
  return place_.on_gpus && o_.type == DType::kE4M3 && !o_.block_scales && size_of(o_.result_type()) == 2;
}

void Resolver::take_measured() {
  const OptionSource table = OptionSource::kTable;
  const std::string file = fmt::format("operator table {}", place_.table.name);
  const OperatorOptions measured = selected_options(world_, op_, o_.m, o_.n, o_.k, o_.type);
  // Where more was chosen than what to compute, tiles are left alone too.
  const bool tile_is_open = o_.use_tuned && is_open(Choosable::kForm) && is_open(Choosable::kTransport) &&
                            is_open(Choosable::kSplits) && is_open(Choosable::kTile);
  if (!one_node()) offer(Choosable::kForm, &OperatorOptions::form, measured.form, table, file);
  if (measured.reduction && allows_chain(o_))
    offer(Choosable::kReduction, &OperatorOptions::reduction, measured.reduction, table, file);
  if (measured.copy_by) offer(Choosable::kTransport, &OperatorOptions::copy_by, measured.copy_by, table, file);
  if (measured.splits > 0) offer(Choosable::kSplits, &OperatorOptions::splits, measured.splits, table, file);
  const bool is_measured_chain = measured.reduction == Reduction::kChain && o_.reduction == measured.reduction;
  if (is_measured_chain && measured.communication_sms >= 0)
    offer(Choosable::kCommunicationSms, &OperatorOptions::communication_sms, measured.communication_sms, table, file);
  const bool is_plain = o_.ns.empty() && o_.type == DType::kBF16 && o_.result_type() == o_.type &&
                        o_.b_layout == BLayout::kNxK && !is_gated(o_.activation);
  if (tile_is_open && has_fp8_tiles()) take_fp8_tile();
  if (!tile_is_open || !is_plain) return;
  const TileChoice tile = measured_tile(place_, op_, o_);
  offer(Choosable::kTile, &OperatorOptions::tile_n, tile.tile_n, table, file);
  offer(Choosable::kPanelGroup, &OperatorOptions::panel_group, tile.panel_group, table, file);
}

}  // namespace tandem::ops
