// The GEMM on one GPU beside cuBLASLt, on the local problems of tensor-parallel layers.
//
//   gemm_bench [--out FILE] [--cublaslt LIBRARY] [--rounds N] [--tp 2,4] [--only LAYER] [--all yes] [--types bf16|fp8]
//
// bf16, or fp8_e4m3 to bf16 without scales; random normal data. In fp8, cuBLASLt has fast accumulation, and the first
// candidate has it, too. Each candidate is a CUDA graph of up to 20 calls. The graphs of all candidates and of
// cuBLASLt alternate, replay by replay. A time is that of one call: the median over the replays. Ratios are taken round
// by round, which cancels the effect of the power limit on a round. --all: also other tiles than the selected ones.
// Rows have the form of bench/results. Exit code 0: all results were right.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gemm/contract/skinny.h"
#include "gemm/hopper/host/cublas_lt.h"
#include "gpu/gemm_shapes.h"
#include "gpu/normal_data.h"
#include "gpu/timed_graph.h"
#include "operators/resolve/operator_defaults.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::bench {

namespace {

struct Settings {
  std::string out, cublaslt, only, command = "gemm_bench";
  int rounds = 5;
  std::vector<int> tp{2, 4};
  bool all = false, fp8 = false;
};

struct Candidate {
  int tile_n;  // 0: what suits the problem
  int panel_group;
  bool shares = true;  ///< the depth of the last tiles
  bool fast = true;    ///< accumulation of fp8
};
/// The first one is what operators take.
template <class T>
constexpr Candidate kCandidates[] = {{0, 8}, {256, 8}, {256, 8, false}, {192, 8}, {128, 8}};
/// The second one is what operators take without fast accumulation.
template <>
constexpr Candidate kCandidates<fp8_e4m3>[] = {{256, 8}, {256, 8, true, false}, {128, 8}, {128, 8, true, false}};

struct Problem {
  std::string layer;
  int tp = 0;
  Size m = 0, n = 0, k = 0;
};

/// Few rows: bound by memory.
template <class Shape>
bool is_skinny(const Shape& shape) {
  return shape.m <= 256;
}

std::vector<Problem> problems(const Settings& settings) {
  std::vector<Problem> all;
  for (const int tp : settings.tp) {
    for (const Layer& l : kGatherLayers)
      all.push_back({std::string("all_gather_gemm ") + l.name, tp, l.m, l.n / tp, l.k});
    for (const Layer& l : kScatterLayers)
      all.push_back({std::string("gemm_reduce_scatter ") + l.name, tp, l.m, l.n, l.k / tp});
  }
  for (const int tp : settings.tp)
    for (const Layer& l : kAllReduceLayers)
      if (is_skinny(l) && !settings.fp8)
        all.push_back({fmt::format("gemm_all_reduce {}", l.name), tp, l.m, l.n, l.k / tp});
  std::erase_if(all, [&](const Problem& p) { return p.layer.find(settings.only) == std::string::npos; });
  return all;
}

/// The bench for matrices A and B of type T.
template <class T>
class Bench {
  static constexpr bool kFp8 = std::is_same_v<T, fp8_e4m3>;

 public:
  Bench(World& world, const Settings& settings)
      : world_(world),
        settings_(settings),
        stream_(world.make_stream("bench")),
        native_(static_cast<cudaStream_t>(stream_.native())),
        cublas_(settings.cublaslt),
        a_data_(1),
        b_data_(2) {
    Size most_a = 0, most_b = 0, most_c = 0;
    for (const Problem& p : problems(settings)) {
      most_a = std::max(most_a, p.m * p.k);
      most_b = std::max(most_b, p.n * p.k);
      most_c = std::max(most_c, p.m * p.n);
    }
    a_ = world.heap().allocate_local<T>(most_a, "a");
    b_ = world.heap().allocate_local<T>(most_b, "b");
    c_ = world.heap().allocate_local<bf16>(most_c, "c");
    const int sms = world.machine().gpu.sm_count;
    workspace_ = {world.heap().signals(GemmWorkspace::words_for(sms), "partial sums given").local(),
                  world.heap().allocate_local<float>(GemmWorkspace::sums_for(sms), "partial sums")};
    constexpr Size kMostColumns = 8192;
    const SkinnyExchange exchange(kMostColumns, 1);
    sum_.c = c_;
    sum_.exchange = world.heap().allocate<LLPacket>(exchange.bytes(kSkinnyMost) / 8, "sums").as<std::byte>();
    sum_.calls = world.heap().epochs(exchange.tiles(kSkinnyMost), "calls").words;
    a_data_.fill(world, a_, 0, most_a);
    b_data_.fill(world, b_, 0, most_b);
  }

  nlohmann::ordered_json run() {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Problem& p : problems(settings_)) run(p, rows);
    if (ratios_.empty()) return rows;
    std::printf("time over cuBLASLt's, %zu shapes of many rows: median %.3f, worst %.3f\n", ratios_.size(),
                median(ratios_), *std::max_element(ratios_.begin(), ratios_.end()));
    return rows;
  }

 private:
  static const char* label_of(const Candidate& candidate) {
    if (!candidate.shares) return " whole depth";
    return kFp8 ? candidate.fast ? " fast" : " precise" : "";
  }
  int tile_n(const Problem& p, const Candidate& candidate) const {
    return candidate.tile_n > 0 ? candidate.tile_n
                                : ops::suitable_tile_n(ops::operator_table(world_.machine()), p.m, p.n, p.k,
                                                       world_.machine().gpu.sm_count);
  }

  Gemm gemm_of(const Problem& p, const Candidate& candidate) const {
    Gemm gemm;
    gemm.m = p.m;
    gemm.n = p.n;
    gemm.k = p.k;
    gemm.type = kFp8 ? DType::kE4M3 : DType::kBF16;
    gemm.fast_accumulation = kFp8 && candidate.fast;
    gemm.tile_n = tile_n(p, candidate);
    gemm.panel_group = candidate.panel_group;
    gemm.a = a_;
    gemm.b = b_;
    gemm.destination = GemmLocal{c_};
    if (candidate.shares) gemm.workspace = workspace_;
    // Few rows as operators would have them; else by the kernel of a fused GEMM, not by cuBLASLt.
    gemm.order = is_skinny(p) ? TileOrder::kRowMajor : TileOrder::kOwnFirst;
    gemm.rows = {p.m, 1, 1, gemm.tile_m};
    if (is_skinny(p) && &candidate != kCandidates<T>) gemm.destination = sum_;
    return gemm;
  }

  void run(const Problem& p, nlohmann::ordered_json& rows) {
    const double rate = kFp8 ? 1400 : 700;  // TFLOP/s
    const double estimate_us = 2e-6 * static_cast<double>(p.m * p.n) * static_cast<double>(p.k) / rate;
    const int calls = static_cast<int>(std::clamp(8000 / estimate_us, 1.0, 20.0));
    const cuda::PlainGemm plain{p.m, p.n, p.k, kFp8 ? DType::kE4M3 : DType::kBF16, DType::kBF16, BLayout::kNxK, kFp8};
    cublas_.prepare(plain);
    TimedGraph cublas(stream_, calls, [&] { cublas_.run(plain, a_, b_, c_, native_); });
    std::vector<TimedGraph> own;
    std::vector<Size> wrong;
    for (const Candidate& candidate : kCandidates<T>) {
      const std::size_t usual = kFp8 ? 2 : 1;
      if (is_skinny(p) ? own.size() == 2 || (own.size() == 1 && p.m > kSkinnyMost)
                       : own.size() >= usual && !settings_.all)
        break;
      const Gemm gemm = gemm_of(p, candidate);
      own.emplace_back(stream_, calls, [&] { stream_.gemm(gemm, world_.team()); });
      wrong.push_back(check(p, own.back()));
    }
    // Each one in turn with cuBLASLt alone: what ran before heats the GPU.
    std::vector<std::vector<double>> peer(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      for (int round = -1; round < settings_.rounds; ++round) {
        own[i].replay();
        cublas.replay();
        if (round >= 0) continue;
        own[i].us.clear();
        cublas.us.clear();
      }
      peer[i] = std::move(cublas.us);
      cublas.us = {};
    }
    std::string line = fmt::format("{:<36} tp{} {:>5}x{:>5}x{:>5} cuBLASLt {:8.1f} us {:4.0f} TFLOP/s |", p.layer, p.tp,
                                   p.m, p.n, p.k, median(peer[0]), estimate_us * rate / median(peer[0]));
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double ratio = add_row(p, kCandidates<T>[i], own[i].us, peer[i], wrong[i], i == 0, rows);
      if (i == 0 && !is_skinny(p)) ratios_.push_back(ratio);
      line += fmt::format(" {}/{}{} {:.3f}{}", tile_n(p, kCandidates<T>[i]), kCandidates<T>[i].panel_group,
                          label_of(kCandidates<T>[i]), ratio, wrong[i] > 0 ? " WRONG" : "");
    }
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  /// Gives the time over cuBLASLt's.
  double add_row(const Problem& p, const Candidate& candidate, const std::vector<double>& own,
                 const std::vector<double>& cublas, Size wrong, bool selected, nlohmann::ordered_json& rows) const {
    const int tile_n = this->tile_n(p, candidate);
    std::vector<double> ratios;
    for (std::size_t r = 0; r < own.size(); ++r) ratios.push_back(own[r] / cublas[r]);
    const auto [least, most] = std::minmax_element(own.begin(), own.end());
    rows.push_back(
        {{"op", "gemm"},
         {"layer", p.layer},
         {"tp", p.tp},
         {"m", p.m},
         {"n", p.n},
         {"k", p.k},
         {"pes", 1},
         {"dtype", kFp8 ? "fp8_e4m3" : "bf16"},
         {"algorithm", is_skinny(p) ? std::string("few_rows")
                                    : fmt::format("128x{}/{}{}", tile_n, candidate.panel_group, label_of(candidate))},
         {"graph", true},
         {"selected", selected},
         {"tandem_us", median(own)},
         {"peers", {{"cublas", median(cublas)}}},
         {"ratio", median(ratios)},
         {"wrong", wrong},
         {"spread", (*most - *least) / median(own)}});
    return median(ratios);
  }

  /// Replays once and compares 100 elements, in all corners and between, with sums in f64.
  Size check(const Problem& p, TimedGraph& t) {
    test::cuda_check(cudaMemsetAsync(c_, 0xFF, static_cast<std::size_t>(p.m * p.n) * 2, native_), "cudaMemset");
    stream_.synchronize();
    t.replay();
    t.us.clear();
    Size wrong = 0;
    for (Size i = 0; i < 100; ++i) {
      const Size row = i % 10 * (p.m - 1) / 9;
      const Size col = i / 10 * (p.n - 1) / 9;
      double want = 0;
      for (Size l = 0; l < p.k; ++l) want += a_data_.at(row * p.k + l) * b_data_.at(col * p.k + l);
      bf16 got{};
      world_.copy_out(&got, c_ + row * p.n + col, 2);
      constexpr double kError = kFp8 ? 0.05 : 0.01;  // fast accumulation keeps 13 bits of a sum
      const double allowed = kError * (std::abs(want) + 0.1 * std::sqrt(static_cast<double>(p.k)));
      wrong += !(std::abs(static_cast<double>(static_cast<float>(got)) - want) <= allowed);
    }
    return wrong;
  }

  World& world_;
  const Settings& settings_;
  Stream stream_;
  cudaStream_t native_;
  cuda::CublasLt cublas_;
  NormalDataOf<T> a_data_, b_data_;
  GemmSum sum_;  // of one PE: the kernel for few rows, whatever is selected
  GemmWorkspace workspace_;
  std::vector<double> ratios_;  // of what is selected
  T *a_ = nullptr, *b_ = nullptr;
  bf16* c_ = nullptr;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i + 1 == words.size()) throw InvalidArgument(words[i] + ": no such option, or it needs a value");
    const std::string& value = words[i + 1];
    settings.command += " " + words[i] + " " + value;
    if (words[i] == "--out")
      settings.out = value;
    else if (words[i] == "--cublaslt")
      settings.cublaslt = value;
    else if (words[i] == "--only")
      settings.only = value;
    else if (words[i] == "--rounds")
      settings.rounds = std::stoi(value);
    else if (words[i] == "--all")
      settings.all = value == "yes";
    else if (words[i] == "--types" && (value == "bf16" || value == "fp8"))
      settings.fp8 = value == "fp8";
    else if (words[i] == "--types")
      throw InvalidArgument(fmt::format("--types: {} given, allowed are bf16 and fp8", value));
    else if (words[i] == "--tp")
      settings.tp = value == "2,4" ? std::vector{2, 4} : std::vector{std::stoi(value)};
    else
      throw InvalidArgument(words[i] + ": no such option");
    ++i;
  }
  return settings;
}

int run_bench(const Settings& settings) {
  if (cuda_devices() == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  CudaOptions options;
  options.heap_bytes = Size{8} << 30;
  CudaThreads threads(1, options);
  nlohmann::ordered_json rows;
  threads.run([&](World& world) {
    rows = settings.fp8 ? Bench<fp8_e4m3>(world, settings).run() : Bench<bf16>(world, settings).run();
  });
  if (!settings.out.empty()) {
    std::ofstream file(settings.out);
    file << nlohmann::ordered_json{{"command", settings.command}, {"rows", rows}}.dump(1) << '\n';
    if (!file) throw RuntimeFailure("cannot write " + settings.out);
  }
  for (const auto& row : rows)
    if (row["wrong"] > 0) return 1;
  return 0;
}

}  // namespace

}  // namespace tandem::bench

int main(int argc, char** argv) {
  try {
    return tandem::bench::run_bench(tandem::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gemm_bench: %s\n", error.what());
    return 1;
  }
}
