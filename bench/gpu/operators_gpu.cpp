// Overlapped operators on all GPUs of this machine, beside cuBLASLt alone and NCCL with cuBLASLt one after the other.
//
//   operators_gpu [--out FILE] [--nccl LIBRARY] [--cublaslt LIBRARY] [--rounds N] [--calls N] [--op OP] [--only LAYER]
//                 [--all]
//
// bf16, random normal data. Each program is a CUDA graph of up to --calls (20) calls; the graphs of all programs take
// turns, replay by replay. A time is that of one call, of the slowest PE; a ratio is taken round by round to cuBLASLt's
// time for the GEMM alone on the gathered problem, its median is shown. --all: every candidate, else the selected one.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "gemm/cuda/cublas_lt.h"
#include "gpu/gemm_shapes.h"
#include "gpu/nccl.h"
#include "gpu/normal_data.h"
#include "gpu/timed_graph.h"
#include "tandem/cuda.h"
#include "tandem/error.h"
#include "tandem/operators.h"

namespace tandem::bench {

namespace {

struct Settings {
  std::string out, nccl = "libnccl.so.2", cublaslt, op, only, command = "operators_gpu";
  int rounds = 5;
  int calls = 20;
  bool all = false;
};

/// A program that takes turns, as all PEs see it.
struct Result {
  std::string name;
  std::vector<double> us;  // round by round, of the slowest PE
  Size wrong = 0;
};

struct Row {
  Operator op{};
  Layer layer{};
  std::vector<Result> results;  // cuBLAS, NCCL with cuBLAS, then the candidates
};

struct Candidate {
  std::string name;
  OperatorOptions options;
};

std::vector<Candidate> candidates(const World& world, Operator op, const Layer& layer, bool every) {
  OperatorOptions base;
  base.m = layer.m;
  base.n = layer.n;
  base.k = layer.k;
  std::vector<Candidate> all{{"selected", selected_options(world, op, layer.m, layer.n, layer.k, DType::kBF16)}};
  if (!every) return all;
  const auto add = [&](const std::string& name, const auto& change) {
    OperatorOptions options = base;
    change(options);
    all.push_back({name, options});
  };
  if (op == Operator::kAllGatherGemm) {
    for (const int splits : {1, 2})
      add(fmt::format("copy_engine_push/{}", splits), [&](auto& o) { o.splits = splits; });
    add("sm_push/2 sms=8", [&](auto& o) {
      o.splits = 2;
      o.copy_by = CopyBy::kSm;
      o.communication_sms = 8;
    });
  } else if (op == Operator::kGemmAllReduce) {
    for (const int splits : {4, 8})
      if (layer.m > 256) add(fmt::format("chain_copy_engine/{}", splits), [&](auto& o) { o.splits = splits; });
  } else {
    for (const int splits : {2, 4})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        add(fmt::format("chain_{}/{}", copy_by == CopyBy::kSm ? "sm" : "copy_engine", splits), [&](auto& o) {
          o.splits = splits;
          o.reduction = Reduction::kChain;
          o.copy_by = copy_by;
        });
    add("sm_push/4", [&](auto& o) {
      o.splits = 4;
      o.copy_by = CopyBy::kSm;
    });
    add("copy_engine_push/4", [&](auto& o) { o.splits = 4; });
  }
  add("sequential", [&](auto& o) { o.form = Form::kSequential; });
  add("compute_only", [&](auto& o) { o.form = Form::kComputeOnly; });
  return all;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What a PE holds of a layer.
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
  Bench(World& world, const Settings& settings, Nccl* nccl, std::vector<Row>& rows, std::mutex& mutex)
      : world_(world),
        settings_(settings),
        nccl_(nccl),
        rows_(rows),
        mutex_(mutex),
        stream_(world.make_stream("bench")),
        native_(static_cast<cudaStream_t>(stream_.native())),
        cublas_(settings.cublaslt) {
    for (int pe = 0; pe < world.num_pes(); ++pe) {
      a_data_.emplace_back(1 + pe);
      b_data_.emplace_back(101 + pe);
    }
  }

  void run() {
    std::vector<std::pair<Operator, Layer>> all;
    for (const Layer& layer : kGatherLayers) all.emplace_back(Operator::kAllGatherGemm, layer);
    for (const Layer& layer : kScatterLayers) all.emplace_back(Operator::kGemmReduceScatter, layer);
    for (const Layer& layer : kAllReduceLayers) all.emplace_back(Operator::kGemmAllReduce, layer);
    std::erase_if(all, [&](const auto& one) {
      return std::string(name(one.first)).find(settings_.op) == std::string::npos ||
             std::string(one.second.name).find(settings_.only) == std::string::npos;
    });
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
    const int calls = std::clamp(static_cast<int>(60000 / estimate_us), 2, settings_.calls);
    std::vector<TimedGraph> programs;
    std::vector<Result> results;
    add_peers(op, layer, local, calls, programs, results);
    std::vector<std::unique_ptr<OperatorPlan>> plans;
    for (const Candidate& candidate : candidates(world_, op, layer, settings_.all)) {
      plans.push_back(make_operator(world_, op, candidate.options));
      OperatorPlan& plan = *plans.back();
      world_.barrier();
      programs.emplace_back(native_, calls, [&] { plan.run(stream_, a_, b_, c_); });
      const Form form = candidate.options.form;
      const bool meaningful = form != Form::kComputeOnly && form != Form::kCommunicationOnly;
      test::cuda_check(cudaMemsetAsync(c_, 0xFF, static_cast<std::size_t>(most_c_) * 2, native_), "cudaMemset");
      replay(programs.back());
      results.push_back({candidate.name, {}, meaningful ? check(op, layer, local) : 0});
    }
    for (TimedGraph& program : programs) program.us.clear();
    for (int round = 0; round < settings_.rounds; ++round)
      // Another one begins each round: what ran before heats the GPUs.
      for (std::size_t i = 0; i < programs.size(); ++i)
        replay(programs[(i + static_cast<std::size_t>(round)) % programs.size()]);
    for (std::size_t i = 0; i < programs.size(); ++i) results[i].us = programs[i].us;
    merge(op, layer, results);
  }

  void add_peers(Operator op, const Layer& layer, const Local& local, int calls, std::vector<TimedGraph>& programs,
                 std::vector<Result>& results) {
    const cuda::PlainGemm gemm{layer.m, local.c_cols, local.a_cols, DType::kBF16, DType::kBF16};
    cublas_.prepare(gemm);
    const bool gather = op == Operator::kAllGatherGemm;
    const void* const whole_a = gather ? peer_ : a_;
    programs.emplace_back(native_, calls, [&] { cublas_.run(gemm, whole_a, b_, peer_c_, native_); });
    results.push_back({"cublas", {}, 0});
    replay(programs.back());
    if (nccl_ == nullptr) return;
    const Size count = gather ? local.a_rows * local.a_cols : local.c_rows * local.c_cols;
    const auto call = [&] {
      if (gather) nccl_->run(Collective::kAllGather, world_.pe(), a_, peer_, count, native_);
      cublas_.run(gemm, whole_a, b_, peer_c_, native_);
      if (op == Operator::kGemmReduceScatter)
        nccl_->run(Collective::kReduceScatter, world_.pe(), peer_c_, c_, count, native_);
      if (op == Operator::kGemmAllReduce) nccl_->run(Collective::kAllReduce, world_.pe(), peer_c_, c_, count, native_);
    };
    call();  // connects, which NCCL cannot do within a capture
    stream_.synchronize();
    programs.emplace_back(native_, calls, call);
    results.push_back({"nccl+cublas", {}, 0});
    replay(programs.back());
  }

  void replay(TimedGraph& program) {
    stream_.synchronize();
    world_.barrier();
    program.replay(stream_);
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
      const double want = expected(op, layer, first_row + row, col);
      // Rounded to 8 bits once, partial sums too.
      const double allowed = 0.01 * (std::abs(want) + std::sqrt(static_cast<double>(layer.k)));
      wrong += !(std::abs(static_cast<double>(static_cast<float>(got)) - want) <= allowed);
    }
    return wrong;
  }

  void merge(Operator op, const Layer& layer, const std::vector<Result>& own) {
    {
      const std::lock_guard lock(mutex_);
      if (rows_.empty() || rows_.back().op != op || rows_.back().layer.name != layer.name ||
          rows_.back().layer.m != layer.m) {
        rows_.push_back({op, layer, own});
      } else {
        std::vector<Result>& all = rows_.back().results;
        for (std::size_t i = 0; i < own.size(); ++i) {
          all[i].wrong += own[i].wrong;
          for (std::size_t r = 0; r < own[i].us.size(); ++r) all[i].us[r] = std::max(all[i].us[r], own[i].us[r]);
        }
      }
    }
    world_.barrier();
    if (world_.pe() == 0) print(rows_.back());
    world_.barrier();
  }

  static void print(const Row& row) {
    const std::vector<double>& base = row.results[0].us;
    std::string line = fmt::format("{:<19} {:<20} m={:<4} cublas {:8.1f} us |", name(row.op), row.layer.name,
                                   row.layer.m, median(base));
    for (std::size_t i = 1; i < row.results.size(); ++i) {
      std::vector<double> ratios;
      for (std::size_t r = 0; r < base.size(); ++r) ratios.push_back(row.results[i].us[r] / base[r]);
      line += fmt::format(" {} {:.3f}{}", row.results[i].name, median(ratios),
                          row.results[i].wrong > 0 ? fmt::format(" WRONG({})", row.results[i].wrong) : "");
    }
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  World& world_;
  const Settings& settings_;
  Nccl* nccl_;
  std::vector<Row>& rows_;
  std::mutex& mutex_;
  Stream stream_;
  cudaStream_t native_;
  cuda::CublasLt cublas_;
  std::vector<NormalData> a_data_, b_data_;
  Size most_a_ = 0, most_b_ = 0, most_c_ = 0, most_peer_ = 0, most_alone_ = 0;
  bf16 *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
  void *peer_ = nullptr, *peer_c_ = nullptr;
};

nlohmann::ordered_json to_json(const std::vector<Row>& rows, const Settings& settings, int pes) {
  nlohmann::ordered_json json{{"command", settings.command}, {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    nlohmann::ordered_json peers = nlohmann::ordered_json::object();
    for (const Result& result : row.results) {
      const double us = std::round(median(result.us) * 10) / 10;
      const auto [least, most] = std::minmax_element(result.us.begin(), result.us.end());
      if (result.name == "cublas" || result.name == "nccl+cublas") {
        peers[result.name] = us;
        continue;
      }
      json["rows"].push_back({{"op", name(row.op)},
                              {"layer", row.layer.name},
                              {"m", row.layer.m},
                              {"n", row.layer.n},
                              {"k", row.layer.k},
                              {"pes", pes},
                              {"dtype", "bf16"},
                              {"algorithm", result.name},
                              {"graph", true},
                              {"selected", result.name == "selected"},
                              {"tandem_us", us},
                              {"peers", peers},
                              {"wrong", result.wrong},
                              {"spread", std::round((*most - *least) / us * 1000) / 1000}});
    }
  }
  return json;
}

int run_bench(const Settings& settings) {
  const int pes = cuda_devices();
  if (pes == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  std::unique_ptr<Nccl> nccl;
  try {
    nccl = std::make_unique<Nccl>(settings.nccl, pes);
  } catch (const std::exception& error) {
    std::printf("without NCCL: %s\n", error.what());
  }
  CudaOptions options;
  options.heap_bytes = Size{30} << 30;
  options.timeout_s = 4;
  CudaThreads threads(pes, options);
  std::vector<Row> rows;
  std::mutex mutex;
  threads.run([&](World& world) { Bench(world, settings, nccl.get(), rows, mutex).run(); });
  if (!settings.out.empty()) {
    std::ofstream file(settings.out);
    file << to_json(rows, settings, pes).dump(1) << '\n';
    if (!file) throw RuntimeFailure("cannot write " + settings.out);
  }
  for (const Row& row : rows)
    for (const Result& result : row.results)
      if (result.wrong > 0) return 1;
  return 0;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    settings.command += " " + words[i];
    if (words[i] == "--all") {
      settings.all = true;
      continue;
    }
    if (i + 1 == words.size()) throw InvalidArgument(words[i] + ": no such option, or it needs a value");
    const std::string& option = words[i];
    const std::string& value = words[++i];
    settings.command += " " + value;
    if (option == "--out")
      settings.out = value;
    else if (option == "--nccl")
      settings.nccl = value;
    else if (option == "--cublaslt")
      settings.cublaslt = value;
    else if (option == "--op")
      settings.op = value;
    else if (option == "--only")
      settings.only = value;
    else if (option == "--rounds")
      settings.rounds = std::stoi(value);
    else if (option == "--calls")
      settings.calls = std::stoi(value);
    else
      throw InvalidArgument(option + ": no such option");
  }
  return settings;
}

}  // namespace

}  // namespace tandem::bench

int main(int argc, char** argv) {
  try {
    return tandem::bench::run_bench(tandem::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "operators_gpu: %s\n", error.what());
    return 1;
  }
}
