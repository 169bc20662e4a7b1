#include "gpu/operators_bench_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "gpu/operators_bench_candidates.h"
#include "tandem/advanced/operator_tuning.h"

namespace tandem::bench {

namespace {

/// Approximate time of one program. At the power limit clocks go up and down by 15 % within 100 to 300 ms. Programs
/// that alternate faster than that are affected equally.
constexpr double kTurnUs = 10000;
/// Turns of a GEMM after which clocks that rose while the GPUs were idle have come down again, or nearly.
constexpr int kSettlingTurns = 3;

/// Returns the order of `count` programs in a round. Each follows a different program from round to round, because the
/// previous program affects the clock.
std::vector<std::size_t> order_of_round(std::size_t count, int round) {
  const auto number = static_cast<std::size_t>(round);
  std::size_t step = 1 + number % count;
  while (std::gcd(step, count) != 1) ++step;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count; ++i) order.push_back((number + i * step) % count);
  return order;
}

/// The memory of one PE for a layer.
struct Local {
  Size a_rows, a_cols, b_rows, c_rows, c_cols;
  Local(Operator op, const Layer& l, int pe, int pes) {
    const bool gather = op == Operator::kAllGatherGemm;
    a_rows = gather ? split(l.m, pes)[pe].size() : l.m;
    a_cols = gather ? l.k : split(l.k, pes)[pe].size();
    b_rows = gather ? split(l.n, pes)[pe].size() : l.n;
    c_rows = op == Operator::kGemmReduceScatter ? split(l.m, pes)[pe].size() : l.m;
    c_cols = b_rows;
  }
};

/// One PE's part.
class Bench {
 public:
  Bench(World& world, const Settings& settings, const Peers& peers, std::vector<Row>& rows, std::mutex& mutex,
        const std::function<void()>& done)
      : world_(world),
        settings_(settings),
        torch_(peers.torch),
        rows_(rows),
        mutex_(mutex),
        done_(done),
        stream_(world.make_stream("bench")),
        native_(static_cast<cudaStream_t>(stream_.native())),
        cublas_(settings.cublaslt) {
    if (peers.nccl != nullptr) {
      shared_.emplace(world);
      nccl_ = std::make_unique<cli::NcclPeer>(*peers.nccl, world, *shared_);
    }
    for (int pe = 0; pe < world.num_pes(); ++pe) {
      a_data_.emplace_back(1 + pe);
      b_data_.emplace_back(101 + pe);
    }
  }

  void run() {
    const std::vector<Problem> all = problems(settings_, world_.num_pes());
    for (const auto& [op, layer] : all) {
      const Local local(op, layer, world_.pe(), world_.num_pes());
      most_a_ = std::max(most_a_, local.a_rows * local.a_cols);
      most_b_ = std::max(most_b_, local.b_rows * local.a_cols);
      most_c_ = std::max(most_c_, local.c_rows * local.c_cols);
      most_peer_ = std::max(most_peer_, layer.m * (op == Operator::kAllGatherGemm ? layer.k : layer.n));
      most_alone_ = std::max(most_alone_, layer.m * local.c_cols);
    }
    a_ = world_.heap().allocate_local<bf16>(most_a_, "a");
    b_ = world_.heap().allocate_local<bf16>(most_b_, "b");
    c_ = world_.heap().allocate_local<bf16>(most_c_, "c");
    // The gathered A, or the partial sums, of the programs without Tandem.
    test::cuda_check(cudaMalloc(&peer_, static_cast<std::size_t>(most_peer_) * 2), "cudaMalloc");
    test::cuda_check(cudaMalloc(&peer_c_, static_cast<std::size_t>(most_alone_) * 2), "cudaMalloc");
    a_data_[static_cast<std::size_t>(world_.pe())].fill(world_, a_, 0, most_a_);
    b_data_[static_cast<std::size_t>(world_.pe())].fill(world_, b_, 0, most_b_);
    a_data_[0].fill(world_, peer_, 0, most_peer_);
    for (const auto& [op, layer] : all) run_layer(op, layer);
  }

 private:
  void run_layer(Operator op, const Layer& layer) {
    const Local local(op, layer, world_.pe(), world_.num_pes());
    const double estimate_us =
        2.0 * static_cast<double>(layer.m * local.c_cols) * static_cast<double>(local.a_cols) / 680e6;
    const int calls = std::clamp(static_cast<int>(kTurnUs / estimate_us), 1, settings_.calls);
    std::vector<TimedGraph> programs;
    std::vector<Result> results;
    add_peers(op, layer, local, calls, programs, results);
    std::vector<std::unique_ptr<OperatorPlan>> plans;
    known_.clear();
    for (const Candidate& candidate : candidates(op, layer, settings_)) {
      plans.push_back(make_operator(world_, op, candidate.options));
      OperatorPlan& plan = *plans.back();
      world_.barrier();
      programs.emplace_back(stream_, calls, [&] { plan.run(stream_, a_, b_, c_); });
      const Form form = candidate.options.form;
      const bool meaningful = form != Form::kComputeOnly && form != Form::kCommunicationOnly;
      test::cuda_check(cudaMemsetAsync(c_, 0xFF, static_cast<std::size_t>(most_c_) * 2, native_), "cudaMemset");
      replay(programs.back());
      const bool chosen = candidate.name.empty();
      results.push_back({chosen ? describe(op, plan.options()) : candidate.name,
                         name(plan.options().form),
                         chosen,
                         {},
                         meaningful ? check(op, layer, local) : 0});
    }
    for (TimedGraph& program : programs) program.us.clear();
    const bool torch = torch_ != nullptr;
    const bool ready = torch && prepare_torch(op, layer, calls);
    std::vector<TorchTime> torch_times;
    for (int round = 0; round < settings_.rounds; ++round) {
      for (int i = 0; torch && i < kSettlingTurns; ++i) {  // clocks have risen while this process waited
        replay(programs[0]);
        programs[0].us.pop_back();
      }
      for (const std::size_t i : order_of_round(programs.size(), round)) replay(programs[i]);
      if (torch) take_turn_in_torch(ready, torch_times);
    }
    for (std::size_t i = 0; i < programs.size(); ++i) results[i].us = programs[i].us;
    merge(op, layer, results, torch_times);
  }

  /// One PE speaks for all; the others wait on the host, so that the GPUs are idle.
  bool prepare_torch(Operator op, const Layer& layer, int calls) {
    stream_.synchronize();
    world_.barrier();
    return world_.pe() == 0 && torch_->prepare(op, layer.m, layer.n, layer.k, calls);
  }

  void take_turn_in_torch(bool ready, std::vector<TorchTime>& times) {
    stream_.synchronize();
    world_.barrier();
    if (ready)
      if (const auto time = torch_->turn()) times.push_back(*time);
    world_.barrier();
  }

  void add_peers(Operator op, const Layer& layer, const Local& local, int calls, std::vector<TimedGraph>& programs,
                 std::vector<Result>& results) {
    const cuda::PlainGemm gemm{layer.m, local.c_cols, local.a_cols, DType::kBF16, DType::kBF16};
    cublas_.prepare(gemm);
    const bool gather = op == Operator::kAllGatherGemm;
    const void* const whole_a = gather ? peer_ : a_;
    programs.emplace_back(stream_, calls, [&] { cublas_.run(gemm, whole_a, b_, peer_c_, native_); });
    results.push_back({"cublas", "", false, {}, 0});
    replay(programs.back());
    if (nccl_ == nullptr) return;
    cli::CollectiveCall collective;
    collective.collective = gather                               ? Collective::kAllGather
                            : op == Operator::kGemmReduceScatter ? Collective::kReduceScatter
                                                                 : Collective::kAllReduce;
    collective.type = DType::kBF16;
    collective.count = gather ? local.a_rows * local.a_cols : local.c_rows * local.c_cols;
    collective.pes = world_.num_pes();
    const auto call = [=, this] {
      if (gather) nccl_->run(collective, a_, peer_, native_);
      cublas_.run(gemm, whole_a, b_, peer_c_, native_);
      if (!gather) nccl_->run(collective, peer_c_, c_, native_);
    };
    call();  // connects, which NCCL cannot do within a capture
    stream_.synchronize();
    programs.emplace_back(stream_, calls, call);
    results.push_back({"nccl+cublas", "", false, {}, 0});
    replay(programs.back());
  }

  void replay(TimedGraph& program) {
    stream_.synchronize();
    world_.barrier();
    program.replay();
  }

  double a_at(Operator op, const Layer& layer, int pe, Size row, Size l) const {
    if (op != Operator::kAllGatherGemm)
      return a_data_[static_cast<std::size_t>(pe)].at(row * split(layer.k, world_.num_pes())[pe].size() + l);
    const Split shards = split(layer.m, world_.num_pes());
    const Size owner = shards.part_of(row);
    return a_data_[static_cast<std::size_t>(owner)].at((row - shards[owner].begin) * layer.k + l);
  }

  double expected(Operator op, const Layer& layer, Size row, Size col) const {
    double want = 0;
    const int pes = world_.num_pes();
    for (int pe = 0; pe < pes; ++pe) {
      if (op == Operator::kAllGatherGemm && pe != world_.pe()) continue;
      const Size k = op == Operator::kAllGatherGemm ? layer.k : split(layer.k, pes)[pe].size();
      const NormalData& b = b_data_[static_cast<std::size_t>(pe)];
      for (Size l = 0; l < k; ++l) want += a_at(op, layer, pe, row, l) * b.at(col * k + l);
    }
    return want;
  }

  /// Compares 100 elements of the result, in all corners and between, with sums in f64.
  Size check(Operator op, const Layer& layer, const Local& local) {
    Size wrong = 0;
    const Size first_row = op == Operator::kGemmReduceScatter ? split(layer.m, world_.num_pes())[world_.pe()].begin : 0;
    for (Size i = 0; i < 100; ++i) {
      const Size row = i % 10 * (local.c_rows - 1) / 9;
      const Size col = i / 10 * (local.c_cols - 1) / 9;
      bf16 got{};
      world_.copy_out(&got, c_ + row * local.c_cols + col, 2);
      if (known_.size() == static_cast<std::size_t>(i)) known_.push_back(expected(op, layer, first_row + row, col));
      const double want = known_[static_cast<std::size_t>(i)];
      // Rounded to 8 bits once, partial sums too.
      const double allowed = 0.01 * (std::abs(want) + std::sqrt(static_cast<double>(layer.k)));
      wrong += !(std::abs(static_cast<double>(static_cast<float>(got)) - want) <= allowed);
    }
    return wrong;
  }

  void add_torch(Operator op, std::vector<Result>& results, const std::vector<TorchTime>& times) const {
    if (static_cast<int>(times.size()) != settings_.rounds) return;
    const char* const name = op == Operator::kGemmAllReduce ? "torch-symm-mem" : "torch-async-tp";
    Result together{name, "", false, {}, 0}, alone{"torch-matmul", "", false, {}, 0};
    for (const TorchTime& time : times) {
      together.us.push_back(time.us);
      alone.us.push_back(time.matmul_us);
    }
    results.push_back(together);
    results.push_back(alone);
  }

  void merge(Operator op, const Layer& layer, const std::vector<Result>& own,
             const std::vector<TorchTime>& torch_times) {
    {
      const std::lock_guard lock(mutex_);
      // The first PE that has a problem adds its row.
      if (problems_done_ == rows_.size()) {
        rows_.push_back({{op, layer}, own});
      } else {
        std::vector<Result>& all = rows_.back().results;
        for (std::size_t i = 0; i < own.size(); ++i) {
          all[i].wrong += own[i].wrong;
          for (std::size_t r = 0; r < own[i].us.size(); ++r) all[i].us[r] = std::max(all[i].us[r], own[i].us[r]);
        }
      }
    }
    ++problems_done_;
    world_.barrier();
    if (world_.pe() == 0) {
      add_torch(op, rows_.back().results, torch_times);
      print(rows_.back());
      done_();
    }
    world_.barrier();
  }

  static void print(const Row& row) {
    const std::vector<double>& base = row.results[0].us;
    std::string line = fmt::format("{:<19} {:<20} m={:<4} cublas {:8.1f} us |", name(row.problem.op),
                                   row.problem.layer.name, row.problem.layer.m, median(base));
    for (std::size_t i = 1; i < row.results.size(); ++i) {
      line += fmt::format(" {} {:.3f}{}", row.results[i].selected ? "selected" : row.results[i].name,
                          median(ratios_of(row, row.results[i])),
                          row.results[i].wrong > 0 ? fmt::format(" WRONG({})", row.results[i].wrong) : "");
    }
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  World& world_;
  const Settings& settings_;
  TorchPeer* torch_;
  std::vector<Row>& rows_;
  std::mutex& mutex_;
  const std::function<void()>& done_;
  Stream stream_;
  cudaStream_t native_;
  cuda::CublasLt cublas_;
  std::optional<cli::Shared> shared_;
  std::unique_ptr<cli::NcclPeer> nccl_;  // null: not available
  std::vector<NormalData> a_data_, b_data_;
  std::vector<double> known_;      // what check() expects of the layer
  std::size_t problems_done_ = 0;  // by this PE
  Size most_a_ = 0, most_b_ = 0, most_c_ = 0, most_peer_ = 0, most_alone_ = 0;
  bf16 *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
  void *peer_ = nullptr, *peer_c_ = nullptr;
};

}  // namespace

std::vector<double> ratios_of(const Row& row, const Result& result) {
  std::vector<double> ratios;
  for (std::size_t r = 0; r < result.us.size(); ++r) ratios.push_back(result.us[r] / row.results[0].us[r]);
  return ratios;
}

std::vector<Problem> problems(const Settings& settings, int pes) {
  std::vector<Problem> all;
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const Layer& layer : settings.shapes) all.push_back({op, layer});
  const bool layers = settings.shapes.empty();
  if (layers)
    for (const Layer& layer : kGatherLayers) all.push_back({Operator::kAllGatherGemm, layer});
  if (layers)
    for (const Layer& layer : kScatterLayers) all.push_back({Operator::kGemmReduceScatter, layer});
  if (layers)
    for (const Layer& layer : kAllReduceLayers) all.push_back({Operator::kGemmAllReduce, layer});
  // Three PEs, for one, cannot have equal parts of all layers.
  const auto is_whole = [&](const Problem& one) {
    return (one.op == Operator::kAllGatherGemm ? one.layer.n : one.layer.k) % (Size{8} * pes) == 0;
  };
  std::erase_if(all, [&](const Problem& one) {
    return (layers && !is_whole(one)) || std::string(name(one.op)).find(settings.op) == std::string::npos ||
           std::string(one.layer.name).find(settings.only) == std::string::npos;
  });
  return all;
}

void measure(World& world, const Settings& settings, const Peers& peers, std::vector<Row>& rows, std::mutex& mutex,
             const std::function<void()>& done) {
  Bench(world, settings, peers, rows, mutex, done).run();
}

}  // namespace tandem::bench
