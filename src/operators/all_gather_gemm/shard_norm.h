#pragma once
/// The norm of this PE's shard of A before all PEs gather it (OperatorOptions::norm).

#include <optional>

#include "operators/normed/row_norms.h"
#include "operators/plan/operator.h"

namespace tandem::ops {

class ShardNorm {
 public:
  ShardNorm(World& world, const Settings& settings)
      : row_bytes_(settings.options.k * size_of(settings.options.type)),
        norms_(world, settings.options.norm, settings.options.type, settings.options.k,
               settings.rows(world.team(), settings.options.m).shard_rows()) {}

  /// Returns the norm of these options, if they have one. Half of the operator has none.
  static std::optional<ShardNorm> of(World& world, const Settings& settings) {
    const Form form = settings.options.form;
    const bool is_half = form == Form::kComputeOnly || form == Form::kCommunicationOnly;
    if (!settings.options.norm.any() || is_half) return std::nullopt;
    return std::optional<ShardNorm>(std::in_place, world, settings);
  }

  /// Norms `rows` of the shard. `to` is the place of the whole shard.
  void run(Stream& main, const OperatorCall& call, Range rows, const Symm<std::byte>& to) const {
    norms_.run(main, rows_to_norm(call, rows, to));
  }
  /// Norms the first `rows` rows, which are the whole shard, stores them on all PEs and signals `chunks` words there.
  void push(Stream& main, const OperatorCall& call, Size rows, const Symm<std::byte>& to, const Signals& ready,
            int chunks) const {
    norms_.push(main, rows_to_norm(call, {0, rows}, to), ready, chunks);
  }
  /// Returns the growth of a word in each `push`.
  int arrivals() const { return norms_.blocks(); }

 private:
  RowsToNorm rows_to_norm(const OperatorCall& call, Range rows, const Symm<std::byte>& to) const {
    const Size begin = rows.begin * row_bytes_;
    const auto* const residual = static_cast<const std::byte*>(call.residual);
    auto* const sum = static_cast<std::byte*>(call.sum);
    return {.rows = rows.size(),
            .from = static_cast<const std::byte*>(call.a) + begin,
            .residual = residual == nullptr ? nullptr : residual + begin,
            .weight = call.norm_weight,
            .bias = call.norm_bias,
            .out = to + begin,
            .sum = sum == nullptr ? nullptr : sum + begin,
            .scales = {}};
  }

  Size row_bytes_;
  RowNorms norms_;
};

}  // namespace tandem::ops
