#pragma once
/// The steps of resolve() (resolve.h), one for each source of values. A step fills in only what is still open.

#include <string>

#include "operators/resolve/resolve.h"
#include "operators/resolve/resolved_choices.h"

namespace tandem::ops {

class Resolver {
 public:
  Resolver(World& world, Operator op, const OperatorOptions& given);

  /// Takes all steps, in the order of precedence.
  ResolvedOptions resolve();

 private:
  bool is_open(Choosable option) const { return !origins_.of(option); }
  bool one_node() const { return place_.team.one_node(); }

  /// Takes `value` unless an earlier source has chosen this option.
  template <class T, class V>
  void offer(Choosable option, T OperatorOptions::*field, V value, OptionSource source, const std::string& reason) {
    if (!is_open(option)) return;
    o_.*field = value;
    origins_.set(option, source, reason);
  }

  // The caller, the cache and the table (resolve_given.cpp).
  void take_callers();
  /// An entry is taken as a whole; what it leaves open itself goes on to the next source.
  void take_cached();
  void limit_tile();
  void take_fp8_tile();
  /// Returns whether GPUs have tiles of two widths for these options.
  bool has_fp8_tiles() const;
  void take_measured();

  // The rules (resolve_rules.cpp).
  void take_rules();
  void take_order();
  /// An open form is overlapped, with the rows up to which the sequential form is the faster one. If these are all rows
  /// of the plan, it is sequential.
  void take_form();
  /// Returns whether the GPU has a GEMM that waits and signals tile by tile; only Hopper has one. Else takes the
  /// sequential form and warns once in a process. Tiles that the caller chose are not replaced.
  bool has_gemm_with_signals();
  /// Options whose open value is a value of its own.
  void take_defaults();

  /// Returns whether sequential runs have a transport, chunks and SMs of their own.
  bool has_sequential_transport() const;
  ResolvedOptions result();

  World& world_;
  Operator op_;
  const Machine model_;
  const Place place_;
  OperatorOptions o_;  // as far as they are chosen
  Origins origins_;
  TileOrder order_ = TileOrder::kOwnFirst;
  ResolvedOptions result_;
};

}  // namespace tandem::ops
