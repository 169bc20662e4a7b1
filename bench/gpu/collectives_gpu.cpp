// Collectives on all GPUs of this machine, beside NCCL where it is found.
//
//   collectives_gpu [--out FILE] [--nccl LIBRARY] [--largest BYTES] [--late] [--only COLLECTIVE]
//
// bf16, random normal data. A CUDA graph holds 2 calls, then 20 between two events; the graphs of all candidates and of
// NCCL take turns, replay by replay. A time is that of one call: the median over the replays, of the slowest PE.
// --late: without programmatic dependent launch.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numbers>

#include "gpu/graph.h"
#include "gpu/nccl.h"
#include "support/collective_values.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::bench {

namespace {

constexpr int kCalls = 20;
constexpr int kFirstCalls = 2;  // bring the PEs together
constexpr Size kPattern = Size{1} << 20;

struct Candidate {
  Collective collective;
  const char* algorithm;
  int blocks;
  Size most_bytes;
};

constexpr Size kAny = Size{1} << 40;
constexpr Size kKiB = 1024;

const std::vector<Candidate>& candidates() {
  using enum Collective;
  static const std::vector<Candidate> all{
      {kAllReduce, "one_shot_ll", 1, 16 * kKiB},
      {kAllReduce, "one_shot_ll", 8, 512 * kKiB},
      {kAllReduce, "one_shot_ll", 32, 512 * kKiB},
      {kAllReduce, "two_shot_ll", 8, 512 * kKiB},
      {kAllReduce, "two_shot_ll", 32, 512 * kKiB},
      {kAllReduce, "one_shot", 16, 4096 * kKiB},
      {kAllReduce, "two_shot", 16, kAny},
      {kAllReduce, "two_shot", 32, kAny},
      {kAllReduce, "two_shot", 64, kAny},
      {kAllReduce, "two_shot", 128, kAny},
      {kAllGather, "ll", 1, 16 * kKiB},
      {kAllGather, "ll", 8, 512 * kKiB},
      {kAllGather, "ll", 32, 4096 * kKiB},
      {kAllGather, "push", 8, kAny},
      {kAllGather, "push", 16, kAny},
      {kAllGather, "push", 32, kAny},
      {kAllGather, "copy_engine_push", 0, kAny},
      {kAllGather, "copy_engine_pull", 0, kAny},
      {kReduceScatter, "push", 8, 4096 * kKiB},
      {kReduceScatter, "push", 32, 65536 * kKiB},
      {kReduceScatter, "pull", 8, kAny},
      {kReduceScatter, "pull", 32, kAny},
      {kReduceScatter, "pull", 64, kAny},
      {kReduceScatter, "pull", 128, kAny},
      {kAllToAll, "ll", 1, 16 * kKiB},
      {kAllToAll, "ll", 8, 512 * kKiB},
      {kAllToAll, "ll", 32, 4096 * kKiB},
      {kAllToAll, "push", 8, kAny},
      {kAllToAll, "push", 16, kAny},
      {kAllToAll, "push", 32, kAny},
      {kAllToAll, "copy_engine", 0, kAny},
      {kBroadcast, "direct", 8, kAny},
      {kBroadcast, "direct", 32, kAny},
      {kBroadcast, "scatter_all_gather", 8, kAny},
      {kBroadcast, "scatter_all_gather", 32, kAny},
      {kBroadcast, "scatter_all_gather", 64, kAny},
      {kSendRecv, "ring", 1, 64 * kKiB},
      {kSendRecv, "ring", 8, kAny},
      {kSendRecv, "ring", 16, kAny},
      {kSendRecv, "ring", 32, kAny},
      {kSendRecv, "grouped", 0, kAny},
  };
  return all;
}

struct Settings {
  std::string out, nccl = "libnccl.so.2", command, only;
  Size largest = Size{1} << 30;
  bool early = true;
};

/// What one of the programs that take turns did.
struct Row {
  Collective collective{};
  Size bytes = 0;
  std::string algorithm;
  int blocks = 0;
  bool selected = false;
  bool is_nccl = false;
  double us = 0;   // of the slowest PE
  Size wrong = 0;  // of all PEs, in samples
};

/// What nccl-tests call the size: bytes of the larger buffer.
Size count_for(Collective collective, Size bytes, int pes) {
  const bool shared = collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
                      collective == Collective::kAllToAll;
  return bytes / 2 / (shared ? pes : 1);
}

/// Standard normal values, repeated with a period that is no power of two.
class Pattern {
 public:
  explicit Pattern(int pe) : values_(static_cast<std::size_t>(kPattern - 3)) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::uint64_t bits = test::mix(1, 2, pe, i);
      const double u = (static_cast<double>(bits >> 40) + 1) * 0x1p-24;
      const double v = static_cast<double>(bits & 0xFF'FFFF) * 0x1p-24;
      values_[i] = bf16(static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v)));
    }
  }
  float at(Size i) const { return static_cast<float>(values_[static_cast<std::size_t>(i) % values_.size()]); }
  const std::vector<bf16>& values() const { return values_; }

 private:
  std::vector<bf16> values_;
};

/// What PE `me` must have at index `i` of its result.
float expected(const std::vector<Pattern>& in, Collective collective, Size count, int me, Size i) {
  const int n = static_cast<int>(in.size());
  const auto sum = [&](Size at) {
    float total = 0;
    for (const Pattern& pe : in) total += pe.at(at);
    return total;
  };
  const auto of = [&](Size pe) -> const Pattern& { return in[static_cast<std::size_t>(pe)]; };
  switch (collective) {
    case Collective::kAllReduce:
      return sum(i);
    case Collective::kReduceScatter:
      return sum(me * count + i);
    case Collective::kAllGather:
      return of(i / count).at(i % count);
    case Collective::kAllToAll:
      return of(i / count).at(me * count + i % count);
    case Collective::kBroadcast:
      return in[0].at(i);
    default:
      return of((me + n - 1) % n).at(i);
  }
}

/// One program of one PE: a graph with an event before and after the calls that count.
struct Timed {
  std::unique_ptr<test::Graph> graph;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  std::vector<double> us{};
  bool is_nccl = false;
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
        cuda_stream_(static_cast<cudaStream_t>(stream_.native())) {
    for (int pe = 0; pe < world.num_pes(); ++pe) patterns_.emplace_back(pe);
    in_ = world.heap().allocate<std::byte>(settings.largest, "in");
    out_ = world.heap().allocate<std::byte>(settings.largest, "out");
    fill(in_.local());
    if (nccl_ == nullptr) return;
    test::cuda_check(cudaMalloc(&nccl_in_, static_cast<std::size_t>(settings.largest)), "cudaMalloc");
    test::cuda_check(cudaMalloc(&nccl_out_, static_cast<std::size_t>(settings.largest)), "cudaMalloc");
    fill(nccl_in_);
  }

  void run() {
    using enum Collective;
    for (const Collective collective : {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kSendRecv}) {
      if (!settings_.only.empty() && settings_.only != name(collective)) continue;
      make_plans(collective);
      for (Size bytes = kKiB; bytes <= settings_.largest; bytes *= 4) run_size(collective, bytes);
    }
  }

 private:
  struct Plan {
    Candidate candidate;
    std::unique_ptr<CollectivePlan> plan;
  };

  void fill(void* data) {
    const Size period = static_cast<Size>(patterns_[0].values().size()) * 2;
    for (Size at = 0; at < settings_.largest; at += period)
      world_.copy_in(static_cast<std::byte*>(data) + at,
                     patterns_[static_cast<std::size_t>(world_.pe())].values().data(),
                     std::min(period, settings_.largest - at));
  }

  std::unique_ptr<CollectivePlan> make(Collective collective, Size most_bytes, const char* algorithm, int blocks) {
    CollectiveOptions options;
    options.type = DType::kBF16;
    options.max_count = count_for(collective, std::min(most_bytes, settings_.largest), world_.num_pes());
    options.algorithm = algorithm;
    options.blocks = blocks;
    return make_collective(world_, collective, options);
  }

  void make_plans(Collective collective) {
    plans_.clear();
    for (const Candidate& c : candidates())
      if (c.collective == collective) plans_.push_back({c, make(collective, c.most_bytes, c.algorithm, c.blocks)});
  }

  Timed timed(const std::function<void()>& call) {
    Timed t;
    test::cuda_check(cudaEventCreate(&t.begin), "cudaEventCreate");
    test::cuda_check(cudaEventCreate(&t.end), "cudaEventCreate");
    t.graph = std::make_unique<test::Graph>(cuda_stream_, [&] {
      for (int i = 0; i < kFirstCalls; ++i) call();
      test::cuda_check(cudaEventRecordWithFlags(t.begin, cuda_stream_, cudaEventRecordExternal), "cudaEventRecord");
      for (int i = 0; i < kCalls; ++i) call();
      test::cuda_check(cudaEventRecordWithFlags(t.end, cuda_stream_, cudaEventRecordExternal), "cudaEventRecord");
    });
    return t;
  }

  void replay(Timed& t) {
    world_.barrier();
    t.graph->launch();
    stream_.synchronize();
    float ms = 0;
    test::cuda_check(cudaEventElapsedTime(&ms, t.begin, t.end), "cudaEventElapsedTime");
    t.us.push_back(static_cast<double>(ms) * 1000 / kCalls);
  }

  void run_size(Collective collective, Size bytes) {
    const Size count = count_for(collective, bytes, world_.num_pes());
    const auto selected = make(collective, bytes, "", 0);
    std::vector<Timed> programs;
    std::vector<Row> rows;
    const auto add = [&](CollectivePlan& plan, int blocks, bool is_selected) {
      programs.push_back(timed([&] { plan.run(stream_, in_, out_, count); }));
      rows.push_back({collective, bytes, plan.algorithm(), blocks, is_selected, false});
    };
    add(*selected, 0, true);
    for (const Plan& p : plans_)
      if (bytes <= p.candidate.most_bytes) add(*p.plan, p.candidate.blocks, false);
    if (nccl_ != nullptr) {
      const auto call = [&] { nccl_->run(collective, world_.pe(), nccl_in_, nccl_out_, count, cuda_stream_); };
      call();  // connects, which NCCL cannot do within a capture
      stream_.synchronize();
      programs.push_back(timed(call));
      programs.back().is_nccl = true;
      rows.push_back({collective, bytes, "nccl", 0, false, true});
    }
    const int replays = bytes <= Size{4} << 20 ? 25 : bytes <= Size{64} << 20 ? 11 : 5;
    for (std::size_t i = 0; i < programs.size(); ++i) rows[i].wrong = check(programs[i], collective, count);
    for (int r = 0; r < replays; ++r)
      for (Timed& t : programs) replay(t);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      std::vector<double>& us = programs[i].us;
      std::nth_element(us.begin(), us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2), us.end());
      rows[i].us = us[us.size() / 2];
      cudaEventDestroy(programs[i].begin);
      cudaEventDestroy(programs[i].end);
    }
    merge(rows);
    world_.barrier();
  }

  /// Replays once over a cleared result and looks at samples of it.
  Size check(Timed& t, Collective collective, Size count) {
    std::byte* const out = t.is_nccl ? static_cast<std::byte*>(nccl_out_) : out_.local();
    const Size outs = output_elements(collective, count, world_.num_pes(), world_.pe(), 0);
    test::cuda_check(cudaMemsetAsync(out, 0xFF, static_cast<std::size_t>(outs) * 2, cuda_stream_), "cudaMemset");
    stream_.synchronize();
    replay(t);
    t.us.clear();
    Size wrong = 0;
    const Size window = std::min<Size>(outs, 4096);
    std::vector<bf16> got(static_cast<std::size_t>(window));
    for (const Size begin : {Size{0}, (outs - window) / 3, outs - window}) {
      world_.copy_out(got.data(), out + begin * 2, window * 2);
      for (Size i = 0; i < window; ++i) {
        const float want = expected(patterns_, collective, count, world_.pe(), begin + i);
        // Rounded once (or, in a ring, once a step) to 8 bits of mantissa; values of a sum may cancel.
        const float allowed = reduces(collective) ? 0.02F * (1 + std::abs(want)) : 0.0F;
        if (!(std::abs(static_cast<float>(got[static_cast<std::size_t>(i)]) - want) <= allowed)) ++wrong;
      }
    }
    world_.barrier();
    return wrong;
  }

  void merge(const std::vector<Row>& own) {
    {
      const std::lock_guard lock(mutex_);
      if (current_of(own).empty())
        rows_.insert(rows_.end(), own.begin(), own.end());
      else
        for (std::size_t i = 0; i < own.size(); ++i) {
          Row& row = rows_[rows_.size() - own.size() + i];
          row.us = std::max(row.us, own[i].us);
          row.wrong += own[i].wrong;
        }
    }
    world_.barrier();
    if (world_.pe() == 0) print(own.size());
  }

  /// Rows of this size that another PE has put in; empty for the first.
  std::vector<Row> current_of(const std::vector<Row>& own) const {
    if (rows_.size() < own.size()) return {};
    const Row& last = rows_.back();
    if (last.collective != own.back().collective || last.bytes != own.back().bytes) return {};
    return {rows_.end() - static_cast<std::ptrdiff_t>(own.size()), rows_.end()};
  }

  void print(std::size_t count) const {
    std::string line;
    for (auto row = rows_.end() - static_cast<std::ptrdiff_t>(count); row != rows_.end(); ++row) {
      if (line.empty()) line = fmt::format("{:<14} {:>10}", name(row->collective), row->bytes);
      line +=
          fmt::format(" {}{}{}={:.2f}{}", row->selected ? "*" : "", row->algorithm,
                      row->blocks > 0 ? fmt::format("/{}", row->blocks) : "", row->us, row->wrong > 0 ? " WRONG" : "");
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
  cudaStream_t cuda_stream_;
  std::vector<Pattern> patterns_;
  std::vector<Plan> plans_;
  Symm<std::byte> in_, out_;
  void* nccl_in_ = nullptr;
  void* nccl_out_ = nullptr;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

nlohmann::ordered_json to_json(const std::vector<Row>& rows, const Settings& settings, int pes,
                               const std::string& nccl_version) {
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, 0);
  nlohmann::ordered_json json;
  json["machine"] = fmt::format("{} x{}", properties.name, pes);
  json["date"] = today();
  json["command"] = settings.command;
  json["nccl"] = nccl_version;
  json["early_launch"] = settings.early;
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    if (row.is_nccl) continue;
    nlohmann::ordered_json peers = nlohmann::ordered_json::object();
    for (const Row& other : rows)
      if (other.is_nccl && other.collective == row.collective && other.bytes == row.bytes)
        peers["nccl"] = std::round(other.us * 100) / 100;
    json["rows"].push_back({{"op", name(row.collective)},
                            {"bytes", row.bytes},
                            {"pes", pes},
                            {"dtype", "bf16"},
                            {"algorithm", row.algorithm},
                            {"blocks", row.blocks},
                            {"in_place", false},
                            {"graph", true},
                            {"buffers", "heap"},
                            {"selected", row.selected},
                            {"tandem_us", std::round(row.us * 100) / 100},
                            {"peers", peers},
                            {"wrong", row.wrong}});
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
    std::printf("without a baseline: %s\n", error.what());
  }
  CudaOptions options;
  options.heap_bytes = 4 * settings.largest + (Size{6} << 30);
  options.early_launch = settings.early;
  CudaThreads threads(pes, options);
  std::vector<Row> rows;
  std::mutex mutex;
  threads.run([&](World& world) { Bench(world, settings, nccl.get(), rows, mutex).run(); });
  if (!settings.out.empty()) {
    std::ofstream file(settings.out);
    file << to_json(rows, settings, pes, nccl ? nccl->version() : "").dump(1) << '\n';
    if (!file) throw RuntimeFailure("cannot write " + settings.out);
  }
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong > 0; }) ? 1 : 0;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  settings.command = "collectives_gpu";
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    settings.command += " " + words[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == words.size()) throw InvalidArgument(words[i] + ": needs a value");
      settings.command += " " + words[i + 1];
      return words[++i];
    };
    if (words[i] == "--out")
      settings.out = value();
    else if (words[i] == "--nccl")
      settings.nccl = value();
    else if (words[i] == "--only")
      settings.only = value();
    else if (words[i] == "--largest")
      settings.largest = std::stoll(value());
    else if (words[i] == "--late")
      settings.early = false;
    else
      throw InvalidArgument(words[i] + ": no such option");
  }
  return settings;
}

}  // namespace

}  // namespace tandem::bench

int main(int argc, char** argv) {
  try {
    return tandem::bench::run_bench(tandem::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collectives_gpu: %s\n", error.what());
    return 1;
  }
}
