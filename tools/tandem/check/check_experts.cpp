// Experts under `tandem check`: routing, dispatch and combine, with routings that are used again, and both products.
#include "check/run_once.h"
#include "collectives/reference/experts_runs.h"
#include "operators/reference/expert_gemm_trial.h"
#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {
namespace {

class ExpertsProgram final : public CheckProgram {
 public:
  explicit ExpertsProgram(kernels::ExpertRuns runs) : runs_(std::move(runs)) {}
  void run(World& world) const override {
    if (const std::string wrong = kernels::wrong_of_runs(world, runs_); !wrong.empty())
      throw checker::WrongResult(world.pe(), wrong);
  }

 private:
  kernels::ExpertRuns runs_;
};

class ExpertGemmsProgram final : public CheckProgram {
 public:
  explicit ExpertGemmsProgram(ops::ExpertGemmRuns runs) : runs_(std::move(runs)) {}
  void run(World& world) const override {
    Stream stream = world.make_stream("main");
    if (const std::string wrong = ops::wrong_of_expert_gemms(world, stream, runs_); !wrong.empty())
      throw checker::WrongResult(world.pe(), wrong);
  }

 private:
  ops::ExpertGemmRuns runs_;
};

/// Marks a case whose PEs share the columns of experts. It has the synchronisation of the case without.
void share_columns(CheckCase& one, int tp_size) {
  if (tp_size == 1) return;
  one.variant = "tp";
  one.has_twin = true;
}

/// Products in fp8 whose first ones are gated. Scales travel and are read beside the rows.
void add_fp8_cases(std::vector<CheckCase>& cases, int pes) {
  for (const ExpertForm form : {ExpertForm::kSequential, ExpertForm::kOverlapped}) {
    const bool is_overlapped = form == ExpertForm::kOverlapped;
    CheckCase one;
    one.op = is_overlapped ? "gemm_combine" : "dispatch_gemm";
    one.algorithm = name(form);
    one.variant = "fp8";
    one.has_twin = true;
    one.machine = machine_for(pes);
    one.pes = pes;
    ops::ExpertGemmRuns runs;
    ExpertGemmOptions& o = runs.options;
    o.experts = {.max_tokens = 2, .hidden = 136, .experts = 2 * pes, .top_k = 2};
    o.experts.wire = is_overlapped ? ExpertWire::kGiven : ExpertWire::kQuantised;
    o.experts.blocks = 2;
    o.intermediate = kGateGroup;
    o.activation = Activation::kSwiGlu;
    o.dispatch_gemm = ExpertForm::kSequential;
    o.gemm_combine = form;
    o.communication_sms = 1;
    o.tile_m = 2;
    o.tile_n = 128;
    runs.rounds = {{"random", 2, 1}, {"ragged", 2, 2}, {"one", 2, 1}};
    one.make = [runs] { return std::make_unique<ExpertGemmsProgram>(runs); };
    cases.push_back(std::move(one));
  }
}

/// Both forms of both operators. Experts have no rows, one tile's rows, one row more, and several tiles. A combination
/// has three chunks of columns, so that two calls for sums beside the GEMM follow each other in the same slots.
void add_expert_gemms_cases(std::vector<CheckCase>& cases, int pes, int tp_size) {
  for (const ExpertForm form : {ExpertForm::kSequential, ExpertForm::kOverlapped})
    for (const bool combines : {false, true}) {
      CheckCase one;
      one.op = combines ? "gemm_combine" : "dispatch_gemm";
      one.algorithm = name(form);
      share_columns(one, tp_size);
      one.machine = machine_for(pes);
      one.pes = pes;
      ops::ExpertGemmRuns runs;
      ExpertGemmOptions& o = runs.options;
      o.experts = {.max_tokens = 3, .hidden = combines ? 24 : 16, .experts = 3 * pes, .top_k = 2};
      o.experts.tp_size = tp_size;
      o.experts.blocks = 2;
      o.intermediate = 8;
      o.dispatch_gemm = combines ? ExpertForm::kSequential : form;
      o.gemm_combine = combines ? form : ExpertForm::kSequential;
      o.communication_sms = 1;
      o.tile_m = 2;
      o.tile_n = 8;
      // A routing that serves several calls alone keeps no PE back, as in the cases above. The rows of "ragged" reach
      // PE 0, which sends none: credits alone keep PE 1 from running ahead. As the second round it has rows for PE 0
      // with two PEs too. Packets, which have a third slot, need more calls.
      const int last = form == ExpertForm::kSequential ? 6 : combines ? 4 : 1;
      runs.rounds = {{"random", 3, 0}, {"ragged", 3, 4}, {"none", 1, 0}, {"one", 3, last}};
      runs.combines = combines;
      one.make = [runs] { return std::make_unique<ExpertGemmsProgram>(runs); };
      cases.push_back(std::move(one));
    }
}

}  // namespace

void add_experts_cases(std::vector<CheckCase>& cases, int pes) {
  struct Variant {
    const char* name;
    ExpertTransport transport;
    ExpertWire wire;
    ExpertLayout layout;
    int batches;
    std::vector<kernels::ExpertRound> rounds;
    Size max_tokens = 2;
    int top_k = 2;
    int tp_size = 1;
  };
  // Random choices alone would hide a slot that is written again too early: every PE would wait for every other one.
  const std::vector<kernels::ExpertRound> rounds{{"random", 2, 0}, {"one", 2, 1}, {"none", 1, 0}, {"ragged", 2, 1}};
  const std::vector<kernels::ExpertRound> reused{{"one", 2, 6}};
  // Rows of shared experts reach all PEs. Only PE 0, which has no tokens of its own, keeps none of them back.
  const std::vector<kernels::ExpertRound> shared{{"random", 2, 0}, {"ragged", 2, 6}, {"none", 1, 0}, {"one", 2, 1}};
  const std::vector<kernels::ExpertRound> fused{{"random", 2, 1}, {"one", 2, 1},    {"none", 1, 1},
                                                {"one", 2, 1},    {"ragged", 2, 1}, {"none", 2, 1}};
  constexpr auto kPackets = ExpertTransport::kPackets;
  constexpr auto kChunks = ExpertTransport::kChunks;
  constexpr auto kFused = ExpertTransport::kFused;
  const std::vector<Variant> variants{
      {"", kPackets, ExpertWire::kType, ExpertLayout::kSorted, 0, rounds},
      {"reused", kPackets, ExpertWire::kQuantised, ExpertLayout::kByExpert, 0, reused},
      {"tiles", kPackets, ExpertWire::kType, ExpertLayout::kInPlace, 0, {{"ragged", 120, 0}, {"one", 113, 0}}, 120, 16},
      {"halves", kPackets, ExpertWire::kType, ExpertLayout::kByExpert, 2, {{"one", 2, 7}}},
      {"", kFused, ExpertWire::kType, ExpertLayout::kSorted, 0, fused},
      {"reused", kFused, ExpertWire::kQuantised, ExpertLayout::kByExpert, 0, {{"one", 2, 8}, {"ragged", 2, 4}}},
      {"", kChunks, ExpertWire::kQuantised, ExpertLayout::kSorted, 0, rounds},
      {"reused",
       kChunks,
       ExpertWire::kType,
       ExpertLayout::kInPlace,
       0,
       {{"none", 2, 0}, {"none", 2, 0}, {"ragged", 2, 4}}},
      {"", kPackets, ExpertWire::kType, ExpertLayout::kSorted, 0, shared, 2, 2, pes},
      {"", kFused, ExpertWire::kType, ExpertLayout::kSorted, 0, fused, 2, 2, pes},
      {"", kChunks, ExpertWire::kType, ExpertLayout::kByExpert, 0, shared, 2, 2, pes % 2 == 0 ? 2 : pes}};
  for (const Variant& variant : variants) {
    CheckCase one;
    one.op = "experts";
    one.algorithm = name(variant.transport);
    one.variant = variant.name;
    share_columns(one, variant.tp_size);
    one.machine = machine_for(pes);
    one.pes = pes;
    kernels::ExpertRuns runs;
    runs.options = {.hidden = 20, .experts = 2 * pes, .wire = variant.wire};
    runs.options.max_tokens = variant.max_tokens;
    runs.options.top_k = variant.top_k;
    runs.options.tp_size = variant.tp_size;
    runs.options.transport = variant.transport;
    runs.options.batches = variant.batches;
    // One block sends its chunks before it receives; of two, each does one of them.
    runs.options.blocks = variant.transport == kChunks && variant.rounds.front().routing == "none" ? 1 : 2;
    runs.options.layout = variant.layout;
    if (variant.layout == ExpertLayout::kSorted) runs.options.align = 4;
    runs.rounds = variant.rounds;
    one.make = [runs] { return std::make_unique<ExpertsProgram>(runs); };
    cases.push_back(std::move(one));
  }
  add_expert_gemms_cases(cases, pes, 1);
  add_expert_gemms_cases(cases, pes, pes);
  add_fp8_cases(cases, pes);
}

}  // namespace tandem::cli
