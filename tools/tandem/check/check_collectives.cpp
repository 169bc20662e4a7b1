// Collectives under `tandem check`.
#include <fmt/format.h>

#include <cstring>

#include "check/run_once.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/error.h"
#include "tools/tandem/check/check_cases.h"
#include "tools/tandem/data/collective_data.h"

namespace tandem::cli {
namespace {

/// The counts of a plan's calls, as parts of the largest. There are enough calls to reuse both halves of every double
/// buffer, and to give blocks other parts than before.
constexpr int kCalls = 4;
constexpr Size kCallCount[] = {4, 2, 4, 4, 4, 4};  // quarters
/// The counts for an algorithm with credits for four calls.
constexpr int kCallsWithCredits = 6;

class CollectiveProgram final : public CheckProgram {
 public:
  /// `staging_bytes`: of staging through which two plans run by turns; 0: one plan without it.
  CollectiveProgram(Collective collective, const CollectiveOptions& options, int pes, bool in_place,
                    Size staging_bytes = 0)
      : collective_(collective), options_(options), in_place_(in_place), staging_bytes_(staging_bytes) {
    const int calls = options.algorithm == "grouped" ? kCallsWithCredits : kCalls;
    for (int i = 0; i < calls; ++i) {
      calls_.push_back({collective, options.type, options.op, options.max_count * kCallCount[i] / 4, pes, options.root,
                        static_cast<std::uint64_t>(i) + 1, DataKind::kExact, options.wire});
      data_.push_back(make_collective_data(calls_.back()));
    }
  }

  void run(World& world) const override {
    const int pe = world.pe();
    const int pes = world.num_pes();
    const int root = options_.root;
    const Size element = size_of(options_.type);
    const Size most = options_.max_count;
    const Size most_in = input_elements(collective_, most, pes, root, root) * element;
    const Size most_out = output_elements(collective_, most, pes, root, root) * element;
    const auto calls = static_cast<Size>(calls_.size());
    auto& heap = world.heap();
    const auto in = heap.allocate<std::byte>(in_place_ ? 0 : most_in, "in");
    const auto out = heap.allocate<std::byte>(in_place_ ? std::max(most_in, most_out) : most_out, "out");
    auto* const inputs = heap.allocate_local<std::byte>(calls * most_in, "inputs");
    auto* const results = heap.allocate_local<std::byte>(calls * most_out, "results");
    auto* const nothing = heap.allocate_local<std::byte>(most_out, "nothing");
    CollectiveOptions options = options_;
    options.scale = data_[0]->scale(pe);
    if (staging_bytes_ > 0)
      options.staging = {heap.allocate<std::byte>(staging_bytes_, "staging of inputs"),
                         heap.allocate<std::byte>(staging_bytes_, "staging of outputs"), staging_bytes_};
    std::vector<std::unique_ptr<CollectivePlan>> plans(staging_bytes_ > 0 ? 2 : 1);
    for (auto& plan : plans) plan = make_collective(world, collective_, options);
    Stream stream = world.make_stream("main");
    std::vector<std::byte> host(static_cast<std::size_t>(std::max(most_in, most_out)));
    std::memset(host.data(), 0xFF, host.size());
    world.copy_in(nothing, host.data(), most_out);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      data_[i]->fill_input(pe, host.data());
      world.copy_in(inputs + static_cast<Size>(i) * most_in, host.data(), input_bytes(i, pe));
    }
    // Calls follow each other in the stream, with the copies of their input and output between them.
    const CollectiveTraits& its = traits(collective_);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const CollectivePlaces at = in_place_ ? its.places(calls_[i].count, pe, root) : CollectivePlaces{};
      const Symm<std::byte> from = in_place_ ? out + at.in * element : in;
      const Symm<std::byte> to = out + at.out * element;
      if (!in_place_ || its.is_whole()) stream.copy_async(to.local(), nothing, output_bytes(i, pe));
      stream.copy_async(from.local(), inputs + static_cast<Size>(i) * most_in, input_bytes(i, pe));
      plans[i % plans.size()]->run(stream, from, to, calls_[i].count);
      stream.copy_async(results + static_cast<Size>(i) * most_out, to.local(), output_bytes(i, pe));
    }
    stream.synchronize();
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      world.copy_out(host.data(), results + static_cast<Size>(i) * most_out, output_bytes(i, pe));
      Check check;
      data_[i]->check_output(pe, host.data(), check);
      if (!check.correct())
        throw checker::WrongResult(
            pe, fmt::format("call {}: {} of {} elements of PE {} are wrong", i + 1, check.wrong, check.checked, pe));
    }
  }

 private:
  Size input_bytes(std::size_t call, int pe) const {
    const CollectiveCall& c = calls_[call];
    return input_elements(collective_, c.count, c.pes, pe, c.root) * size_of(options_.type);
  }
  Size output_bytes(std::size_t call, int pe) const {
    const CollectiveCall& c = calls_[call];
    return output_elements(collective_, c.count, c.pes, pe, c.root) * size_of(options_.type);
  }

  Collective collective_;
  CollectiveOptions options_;
  bool in_place_;
  Size staging_bytes_;
  std::vector<CollectiveCall> calls_;
  std::vector<std::unique_ptr<CollectiveData>> data_;
};

/// Sizes in elements of f32 that exercise all of an algorithm: several chunks, several rounds.
struct Variant {
  const char* name;
  Size count;
  int blocks = 2;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  Size tile_bytes = 0;
  Size staging_bytes = 0;
};

bool sends_packets(const std::string& algorithm) { return algorithm.ends_with("ll") || algorithm.ends_with("ll128"); }

std::vector<Variant> variants(Collective collective, const std::string& algorithm, int pes) {
  std::vector<Variant> all{{"", 44}};
  const bool in_chunks = collective == Collective::kBroadcast && algorithm != "direct" && algorithm != "pull";
  if (in_chunks) all.push_back({"chunks", Size{44} << 10, 1});     // more than a window of chunks of 16 KiB
  if (algorithm == "grouped") all.push_back({"staged", 1200, 1});  // more than its packets take
  if (algorithm == "tree" && reduces(collective)) all.push_back({"chunks", Size{48} << 10, 1});
  // Each call has three rounds of packets, one of them partial. A two-shot reduction divides them among the PEs.
  const Size shards = algorithm.starts_with("two_shot") ? pes : 1;
  if (sends_packets(algorithm)) all.push_back({"rounds", 150 * shards, 1, ReduceOp::kSum, false, 256});
  // More chunks than slots, which are as short as a slot may be and lie in staging that plans share.
  constexpr Size kChunks = 20, kSlotBytes = 128, kSlots = 8;
  if (algorithm == "stream")
    all.push_back({"slots", kChunks * kSlotBytes / 4 * (collective == Collective::kAllReduce ? pes : 1), 1,
                   ReduceOp::kSum, false, 0, kSlots * kSlotBytes * (pes - 1)});
  // A ring's chunk is sent as two pieces of 16 KiB.
  if (algorithm == "ring" && reduces(collective))
    all.push_back({"pieces", Size{8200} * (collective == Collective::kAllReduce ? pes : 1), 1});
  // Without blocks a copy engine also copies data within the GPU.
  if (algorithm.starts_with("copy_engine") && !reduces(collective)) all.push_back({"engines_alone", 44, 0});
  if (reduces(collective)) all.push_back({"premul", 44, 2, ReduceOp::kPremulSum});
  // The root of a broadcast by pull stores a part of the larger calls.
  const bool shares = collective == Collective::kBroadcast && algorithm == "pull";
  if (traits(collective).has_place)
    all.push_back({"in_place", shares ? Size{32} << 10 : 44, shares ? 1 : 2, ReduceOp::kSum, true});
  return all;
}

/// Returns whether this number of PEs, machine and node size can run it. Others are refused by name.
bool runs_here(const AlgorithmInfo& info, int pes_per_node) { return pes_per_node == 0 || !info.one_node_only; }

void add_quantised_cases(std::vector<CheckCase>& cases, int pes) {
  constexpr Size kSeveralPieces = 300, kTwoRounds = (Size{32} << 10) + 130;
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    for (const WireFormat wire : {WireFormat::kFp8, WireFormat::kInt8}) {
      const bool has_rounds = wire == WireFormat::kInt8;
      if (has_rounds && pes > 2) continue;  // a round is large, and the same for all numbers of PEs
      CheckCase one;
      one.op = name(collective);
      one.algorithm = "quantised";
      one.variant = has_rounds ? "int8_rounds" : "fp8";
      one.machine = machine_for(pes);
      one.pes = pes;
      one.tile_bytes = has_rounds ? 0 : 512;
      CollectiveOptions options;
      options.wire = wire;
      options.max_count = (has_rounds ? kTwoRounds : kSeveralPieces) * (collective == Collective::kAllReduce ? pes : 1);
      options.blocks = has_rounds ? 1 : 2;
      one.make = [collective, options, pes] {
        return std::make_unique<CollectiveProgram>(collective, options, pes, collective == Collective::kAllReduce);
      };
      cases.push_back(std::move(one));
    }
}

}  // namespace

void add_collective_cases(std::vector<CheckCase>& cases, int pes) {
  for (const AlgorithmInfo& info : collective_algorithms()) {
    for (const int pes_per_node : node_sizes(pes)) {
      if (!runs_here(info, pes_per_node)) continue;
      for (const Variant& variant : variants(info.collective, info.name, pes)) {
        CheckCase one;
        one.op = name(info.collective);
        one.algorithm = info.name;
        one.variant = variant.name;
        one.machine = machine_for(pes);
        one.pes = pes;
        one.pes_per_node = pes_per_node;
        one.tile_bytes = variant.tile_bytes;
        CollectiveOptions options;
        options.op = variant.op;
        options.root = pes - 1;
        options.max_count = variant.count;
        options.algorithm = info.name;
        options.blocks = info.name == "multi_ring" ? (pes_per_node == 0 ? pes : pes_per_node) : variant.blocks;
        one.make = [collective = info.collective, options, pes, variant] {
          return std::make_unique<CollectiveProgram>(collective, options, pes, variant.in_place, variant.staging_bytes);
        };
        cases.push_back(std::move(one));
      }
    }
  }
  add_quantised_cases(cases, pes);
}

}  // namespace tandem::cli
