#include "operators/resolve/tuned.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/log.h"
#include "tandem/advanced/operator_tuning.h"
#include "tune/consensus.h"

namespace tandem::ops {

namespace {

/// A cached configuration is one unit: a caller who chose any part of it chooses the rest by other means.
bool leaves_open(const OperatorOptions& o) {
  const OperatorOptions open;
  return o.use_tuned && o.form == Form::kSuitable && !o.copy_by && o.direction == open.direction && !o.reduction &&
         o.order.empty() && o.splits == 0 && o.shots == 0 && o.communication_sms < 0 && o.tile_m == open.tile_m &&
         o.tile_n == open.tile_n && o.panel_group == open.panel_group;
}

}  // namespace

std::optional<OperatorOptions> find_agreed(World& world, Operator op, const OperatorOptions& options) {
  const char* const file = std::getenv(kOperatorCacheVariable);
  if (file == nullptr || *file == '\0' || !leaves_open(options)) return std::nullopt;
  std::string warning;
  const auto found = find_tuned(file, operator_key(world, op, options), warning);
  const bool speaks = world.pe() == 0;  // for all PEs, which read the same file
  if (speaks && !warning.empty()) log_line(LogLevel::kWarn, [&] { return warning; });
  // The file may change while the PEs read it: a hit counts where all have the same.
  const Epoch mine = found ? tune::digest(describe(op, found->options)) : 0;
  const bool hit = tune::Consensus(world).is_same(mine) && found;
  if (speaks)
    log_line(LogLevel::kInfo, [&] {
      return fmt::format("{} {}x{}x{}: {} in {}", name(op), options.m, options.n, options.k,
                         hit ? "tuned options found" : "no tuned options", file);
    });
  return hit ? std::optional(found->options) : std::nullopt;
}

}  // namespace tandem::ops
