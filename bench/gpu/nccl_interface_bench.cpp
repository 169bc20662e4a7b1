// Times the calls of two libraries with NCCL's interface, Tandem and NCCL, which take turns on the same memory.
//
//   nccl_interface_bench [--out FILE.json] [--library FILE] [--nccl FILE] [--pes N] [--rounds N]
//                        [--ops all_reduce,...] [--bytes 1024,...]
//
// A process for each GPU. NCCL: TANDEM_NCCL_LIBRARY, else libnccl.so.2 of the loader. A time is that of the slowest
// rank, the median of the rounds. FILE.json is whole after each row, in the form of bench/results. Windows are measured
// where no sizes are chosen.

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "gpu/nccl/nccl_ranks.h"
#include "support/nccl_case.h"

namespace tandem::check {
namespace {

struct Options {
  std::string out;
  std::string library = "libtandem_nccl.so";
  std::string nccl =
      std::getenv("TANDEM_NCCL_LIBRARY") != nullptr ? std::getenv("TANDEM_NCCL_LIBRARY") : "libnccl.so.2";
  int pes = 2;
  int rounds = 5;
  std::string ops;    ///< separated by commas; empty: all
  std::string bytes;  ///< likewise
};

bool is_chosen(const std::string& list, const std::string& item) {
  return list.empty() || ("," + list + ",").find("," + item + ",") != std::string::npos;
}

/// One library and this process's rank of its communicator.
struct Contender {
  std::string name;
  NcclLibrary nccl;
  Rank rank;
  char* in = nullptr;  ///< plain memory of both, or its window
  char* out = nullptr;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The rank's side of the run.
class Bench {
 public:
  Bench(const Options& options, Shared& shared, int number) : options_(options), shared_(shared), number_(number) {}

  void run() {
    add("tandem", options_.library);
    add("nccl", options_.nccl);
    allocate();
    for (const std::size_t bytes : kSizes) {
      if (bytes == kWindowsAfter && options_.bytes.empty()) windows();
      if (!is_chosen(options_.bytes, std::to_string(bytes))) continue;
      for (const Kind kind : kOperations) {
        if (!is_chosen(options_.ops, kKindNames[static_cast<int>(kind)])) continue;
        for (const bool graph : {true, false}) row(kind, bytes, graph, "plain");
      }
    }
  }

 private:
  static constexpr std::size_t kKB = 1024;
  static constexpr std::size_t kMB = kKB * kKB;
  static constexpr std::size_t kMost = kMB * kKB;
  static constexpr std::size_t kWindowsAfter = 4 * kKB;  // the first sizes are the ones that matter most
  static constexpr std::size_t kSizes[] = {kKB,      64 * kKB, kMB,       16 * kMB, 256 * kMB, 4 * kKB,
                                           16 * kKB, 4 * kMB,  256 * kKB, 64 * kMB, kMost};
  static constexpr Kind kOperations[] = {Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter,
                                         Kind::AlltoAll,  Kind::Broadcast, Kind::Ring};

  void add(const std::string& name, const std::string& file) {
    auto made = std::make_unique<Contender>(Contender{name, NcclLibrary(file), {{number_, nullptr, nullptr}}});
    Rank& rank = made->rank;
    rank.use();
    require(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
    if (number_ == 0) TANDEM_NCCL(made->nccl, GetUniqueId, &shared_.id);
    shared_.meet(options_.pes);
    const std::size_t before = free_bytes();
    const double begin = seconds();
    TANDEM_NCCL(made->nccl, CommInitRank, &rank.comm, options_.pes, shared_.id, number_);
    const double created = seconds() - begin;
    const std::size_t empty = before - free_bytes();
    void* const data = rank.allocate(kMB);
    TANDEM_NCCL(made->nccl, AllReduce, data, data, 1, ncclFloat32, ncclSum, rank.comm, rank.stream);
    rank.synchronize();
    note({{"start", name},
          {"s", created},
          {"s_with_first_call", seconds() - begin},
          {"MiB", empty / kMB},
          {"MiB_after_first_call", (before - free_bytes()) / kMB}});
    contenders_.push_back(std::move(made));
    shared_.meet(options_.pes);
  }

  static std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    require(cudaMemGetInfo(&free, &total));
    return free;
  }

  void allocate() {
    const Rank& rank = contenders_[0]->rank;
    auto* const in = static_cast<char*>(rank.allocate(kMost));
    auto* const out = static_cast<char*>(rank.allocate(kMost));
    require(cudaMemset(in, 0, kMost));
    require(cudaMemset(out, 0, kMost));
    require(cudaDeviceSynchronize());
    for (const auto& one : contenders_) {
      one->in = in;
      one->out = out;
    }
  }

  /// Some rows again, in windows of each library.
  void windows() {
    constexpr std::size_t kBytes = 256 * kMB;
    std::vector<std::pair<char*, char*>> plain;
    for (const auto& one : contenders_) {
      plain.emplace_back(one->in, one->out);
      for (char** memory : {&one->in, &one->out}) {
        void* made = nullptr;
        ncclWindow_t window = nullptr;
        TANDEM_NCCL(one->nccl, MemAlloc, &made, kBytes);
        TANDEM_NCCL(one->nccl, CommWindowRegister, one->rank.comm, made, kBytes, &window, kWindowSymmetric);
        require(cudaMemset(made, 0, kBytes));
        *memory = static_cast<char*>(made);
      }
    }
    require(cudaDeviceSynchronize());
    for (const std::size_t bytes : {kKB, kMB, 16 * kMB, kBytes}) {
      for (const Kind kind : {Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::AlltoAll}) {
        row(kind, bytes, true, "window");
      }
    }
    for (std::size_t i = 0; i < plain.size(); ++i) std::tie(contenders_[i]->in, contenders_[i]->out) = plain[i];
  }

  void row(Kind kind, std::size_t bytes, bool graph, const char* buffers) {
    Case c{kind, ncclFloat32, ncclSum, bytes / 4};
    const bool parts = c.inputs(0, 2) + c.outputs(0, 2) > 2 * c.count;
    if (parts) c.count /= static_cast<std::size_t>(options_.pes);
    const int repeats = bytes <= 64 * kKB ? 40 : bytes <= kMB ? 20 : bytes <= 16 * kMB ? 6 : 2;
    std::map<std::string, std::vector<double>> times;
    std::vector<cudaGraphExec_t> graphs(contenders_.size());
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      Contender& one = *contenders_[i];
      issue(one.nccl, c, one.rank, options_.pes, one.in, one.out);
      one.rank.synchronize();
      if (graph) graphs[i] = captured(one, c, repeats);
    }
    for (int round = -1; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < graphs.size(); ++i) {
        const double us = timed(*contenders_[i], c, graphs[i], repeats);
        if (round >= 0) times[contenders_[i]->name].push_back(us);
      }
    }
    if (graph) {
      for (const cudaGraphExec_t one : graphs) require(cudaGraphExecDestroy(one));
    }
    const auto low_and_high = [&](const char* name) {
      const auto [low, high] = std::minmax_element(times[name].begin(), times[name].end());
      return nlohmann::json{*low, *high};
    };
    note({{"op", kKindNames[static_cast<int>(kind)]},
          {"bytes", bytes},
          {"pes", options_.pes},
          {"interface", "nccl"},
          {"algorithm", graph ? "graph" : "launches"},
          {"buffers", buffers},
          {"selected", true},
          {"tandem_us", median(times["tandem"])},
          {"tandem_us_range", low_and_high("tandem")},
          {"nccl_us_range", low_and_high("nccl")},
          {"peers", {{"nccl", median(times["nccl"])}}}});
  }

  cudaGraphExec_t captured(const Contender& one, const Case& c, int repeats) const {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    require(cudaStreamBeginCapture(one.rank.stream, cudaStreamCaptureModeGlobal));
    for (int k = 0; k < repeats; ++k) issue(one.nccl, c, one.rank, options_.pes, one.in, one.out);
    require(cudaStreamEndCapture(one.rank.stream, &graph));
    require(cudaGraphInstantiate(&made, graph, 0));
    require(cudaGraphDestroy(graph));
    return made;
  }

  /// Microseconds of a call on the slowest rank.
  double timed(const Contender& one, const Case& c, cudaGraphExec_t graph, int repeats) {
    if (events_[0] == nullptr) {
      for (cudaEvent_t& event : events_) require(cudaEventCreate(&event));
    }
    shared_.meet(options_.pes);
    require(cudaEventRecord(events_[0], one.rank.stream));
    if (graph != nullptr) {
      require(cudaGraphLaunch(graph, one.rank.stream));
    } else {
      for (int k = 0; k < repeats; ++k) issue(one.nccl, c, one.rank, options_.pes, one.in, one.out);
    }
    require(cudaEventRecord(events_[1], one.rank.stream));
    require(cudaStreamSynchronize(one.rank.stream));
    float ms = 0;
    require(cudaEventElapsedTime(&ms, events_[0], events_[1]));
    shared_.times[number_] = 1000.0 * static_cast<double>(ms) / repeats;
    shared_.meet(options_.pes);
    const double slowest = *std::max_element(shared_.times, shared_.times + options_.pes);
    shared_.meet(options_.pes);
    return slowest;
  }

  /// Keeps a row, or what a start took, and writes the file.
  void note(const nlohmann::json& what) {
    if (number_ != 0) return;
    std::printf("%s\n", what.dump().c_str());
    if (options_.out.empty()) return;
    (what.contains("op") ? rows_ : starts_).push_back(what);
    std::ofstream(options_.out) << nlohmann::json{{"command", "nccl_interface_bench"},
                                                  {"starts", starts_},
                                                  {"rows", rows_}}
                                << "\n";
  }

  const Options& options_;
  Shared& shared_;
  const int number_;
  std::vector<std::unique_ptr<Contender>> contenders_;
  cudaEvent_t events_[2] = {};
  nlohmann::json rows_ = nlohmann::json::array();
  nlohmann::json starts_ = nlohmann::json::array();
};

}  // namespace
}  // namespace tandem::check

int main(int argc, char** argv) {
  using namespace tandem::check;
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--out") options.out = argv[i + 1];
    if (name == "--library") options.library = argv[i + 1];
    if (name == "--nccl") options.nccl = argv[i + 1];
    if (name == "--pes") options.pes = ranks_of(argv[i + 1]);
    if (name == "--ops") options.ops = argv[i + 1];
    if (name == "--bytes") options.bytes = argv[i + 1];
    if (name == "--rounds") options.rounds = std::atoi(argv[i + 1]);
  }
  if (options.pes == 0) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Shared& shared = make_shared_memory();
  const bool well = in_processes(shared, options.pes, [&](int rank) {
    Bench(options, shared, rank).run();
    return 0;
  });
  return well ? 0 : 1;
}
