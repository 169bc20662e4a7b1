#include "gpu/operators_bench_candidates.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "tandem/error.h"
#include "tune/operator_names.h"

namespace tandem::bench {

namespace {

/// `options` changed as `text` says: KEY=VALUE pairs between commas.
OperatorOptions parse_try(const std::string& text, OperatorOptions options) {
  OperatorOptions& o = options;
  std::istringstream pairs(text);
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const std::size_t at = pair.find('=');
    const std::string key = pair.substr(0, at), value = at == std::string::npos ? "" : pair.substr(at + 1);
    const std::map<std::string, int*> numbers{{"splits", &o.splits},
                                              {"tile_n", &o.tile_n},
                                              {"group", &o.panel_group},
                                              {"sms", &o.communication_sms},
                                              {"shots", &o.shots}};
    if (const auto number = numbers.find(key); number != numbers.end())
      *number->second = std::stoi(value);
    else if (key == "form")
      o.form = value == "compute_only"         ? Form::kComputeOnly
               : value == "communication_only" ? Form::kCommunicationOnly
                                               : tune::parse_form(value);
    else if (key == "by")
      o.copy_by = tune::parse_copy_by(value);
    else if (key == "reduction")
      o.reduction = tune::parse_reduction(value);
    else if (key == "order")
      o.order = value;
    else
      throw InvalidArgument("--try: '" + pair +
                            "' given, allowed are form, by, reduction, order, splits, tile_n, group, "
                            "sms and shots with a value each");
  }
  return options;
}

/// Candidates, each with options that differ from common ones.
class Candidates {
 public:
  explicit Candidates(const OperatorOptions& first) : base(first), all{{"", first}} {}

  template <class Change>
  void add(const std::string& name, const Change& change) {
    OperatorOptions options = base;
    change(options);
    all.push_back({name, options});
  }

  OperatorOptions base;
  std::vector<Candidate> all;
};

const char* mover(CopyBy copy_by) { return copy_by == CopyBy::kSm ? "sm" : "copy_engine"; }

void add_gathers(Candidates& to) {
  for (const int splits : {1, 2})
    to.add(fmt::format("copy_engine_push/{}", splits), [&](auto& o) { o.splits = splits; });
  to.add("sm_push/2 sms=8", [&](auto& o) {
    o.splits = 2;
    o.copy_by = CopyBy::kSm;
    o.communication_sms = 8;
  });
}

void add_all_reduces(Candidates& to) {
  for (const int splits : {4, 8})
    to.add(fmt::format("chain_copy_engine/{}", splits), [&](auto& o) { o.splits = splits; });
  for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
    to.add(fmt::format("two_shot_{}/4 sms=8", mover(copy_by)), [&](auto& o) {
      o.reduction = Reduction::kOwner;
      o.shots = 2;
      o.copy_by = copy_by;
      o.splits = 4;
      o.communication_sms = 8;
    });
}

void add_reduce_scatters(Candidates& to) {
  for (const int splits : {2, 4})
    for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
      to.add(fmt::format("chain_{}/{}", mover(copy_by), splits), [&](auto& o) {
        o.splits = splits;
        o.reduction = Reduction::kChain;
        o.copy_by = copy_by;
      });
  for (const CopyBy copy_by : {CopyBy::kSm, CopyBy::kCopyEngine})
    to.add(fmt::format("{}_push/4", mover(copy_by)), [&](auto& o) {
      o.reduction = Reduction::kOwner;
      o.splits = 4;
      o.copy_by = copy_by;
    });
}

void add_sequential(Candidates& to, Operator op) {
  for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
    if (op != Operator::kGemmAllReduce || copy_by == CopyBy::kSm)
      to.add(fmt::format("sequential_{}", mover(copy_by)), [&](auto& o) {
        o.form = Form::kSequential;
        o.copy_by = copy_by;
        o.splits = 1;
        o.communication_sms = copy_by == CopyBy::kSm && op == Operator::kAllGatherGemm ? 16 : -1;
      });
}

}  // namespace

std::vector<Candidate> candidates(Operator op, const Layer& layer, const Settings& settings) {
  OperatorOptions own;
  own.m = layer.m;
  own.n = layer.n;
  own.k = layer.k;
  Candidates to(own);
  to.base.use_tuned = false;
  // Overlapping has to pay. The transport is the faster one for a whole collective of that size.
  to.add("sequential", [&](auto& o) {
    o.form = Form::kSequential;
    o.copy_by = op == Operator::kAllGatherGemm && layer.m > 1024 ? CopyBy::kCopyEngine : CopyBy::kSm;
    o.splits = 1;
    o.communication_sms = op == Operator::kAllGatherGemm && layer.m <= 1024 ? 16 : -1;
  });
  for (const std::string& text : settings.tries) to.all.push_back({text, parse_try(text, to.base)});
  if (!settings.all) return to.all;
  if (op != Operator::kGemmAllReduce)
    to.add("decomposed", [&](auto& o) {
      o.form = Form::kDecomposed;
      o.copy_by = CopyBy::kCopyEngine;
      o.splits = 1;
    });
  to.base.form = Form::kOverlapped;
  if (op == Operator::kAllGatherGemm) add_gathers(to);
  if (op == Operator::kGemmAllReduce && layer.m > 256) add_all_reduces(to);
  if (op == Operator::kGemmReduceScatter) add_reduce_scatters(to);
  add_sequential(to, op);
  to.add("compute_only", [&](auto& o) { o.form = Form::kComputeOnly; });
  return to.all;
}

}  // namespace tandem::bench
