// Overlapped operators on all GPUs of this machine, beside cuBLASLt alone, NCCL with cuBLASLt one after the other, and
// PyTorch's asynchronous tensor parallelism.
//
//   operators_bench [--out FILE] [--nccl LIBRARY] [--cublaslt LIBRARY] [--torch SCRIPT|none] [--rounds N] [--calls N]
//                   [--op OP] [--only LAYER] [--shape MxNxK]... [--all]
//
// --shape: these global problems in place of the layers of models.
//
// bf16, random normal data. Each program is a CUDA graph of up to --calls (20) calls; the graphs of all programs take
// turns, replay by replay, --rounds (5) times. A time is that of one call, of the slowest PE; a ratio is taken round by
// round to cuBLASLt's time for the GEMM alone on the gathered problem, its median is shown. --all: more candidates than
// what plans take by themselves. PyTorch runs before, in processes of its own; the default script lies beside the
// program.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gpu/operators_bench_torch.h"
#include "gpu/operators_bench_turns.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::bench {

namespace {

using Json = nlohmann::ordered_json;

double rounded(double us) { return std::round(us * 10) / 10; }

Json peers_of(const Row& row, const std::vector<TorchTime>& torch) {
  const auto& [op, layer] = row.problem;
  Json peers = Json::object();
  for (const Result& result : row.results)
    if (result.form.empty()) peers[result.name] = rounded(median(result.us));
  for (const TorchTime& time : torch)
    if (time.op == op && time.m == layer.m && time.n == layer.n && time.k == layer.k && time.right) {
      peers["torch-async-tp"] = rounded(time.us);
      peers["torch-matmul"] = rounded(time.matmul_us);
    }
  return peers;
}

Json to_json(const std::vector<Row>& rows, const std::vector<TorchTime>& torch, const Settings& settings, int pes) {
  Json json{{"command", settings.command}, {"rows", Json::array()}};
  for (const Row& row : rows) {
    const auto& [op, layer] = row.problem;
    const Json peers = peers_of(row, torch);
    for (const Result& result : row.results) {
      if (result.form.empty()) continue;
      const double us = median(result.us);
      const auto [least, most] = std::minmax_element(result.us.begin(), result.us.end());
      json["rows"].push_back({{"op", name(op)},
                              {"layer", layer.name},
                              {"m", layer.m},
                              {"n", layer.n},
                              {"k", layer.k},
                              {"pes", pes},
                              {"dtype", "bf16"},
                              {"algorithm", result.name},
                              {"form", result.form},
                              {"graph", true},
                              {"selected", result.selected},
                              {"tandem_us", rounded(us)},
                              {"peers", peers},
                              {"wrong", result.wrong},
                              {"spread", std::round((*most - *least) / us * 1000) / 1000}});
    }
  }
  return json;
}

void print_torch(const std::vector<TorchTime>& torch) {
  for (const TorchTime& time : torch)
    std::printf("torch-async-tp %s %lldx%lldx%lld: %.1f us, %.3f of torch.matmul alone%s%s\n", name(time.op),
                static_cast<long long>(time.m), static_cast<long long>(time.n), static_cast<long long>(time.k), time.us,
                time.us / time.matmul_us, time.graph ? "" : ", without a graph", time.right ? "" : ", WRONG");
  std::fflush(stdout);
}

int run_bench(const Settings& settings) {
  const int pes = cuda_devices();
  if (pes == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  const std::vector<TorchTime> torch = measure_torch(settings, problems(settings), pes);
  print_torch(torch);
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
  threads.run([&](World& world) { measure(world, settings, nccl.get(), rows, mutex); });
  if (!settings.out.empty()) {
    std::ofstream file(settings.out);
    file << to_json(rows, torch, settings, pes).dump(1) << '\n';
    if (!file) throw RuntimeFailure("cannot write " + settings.out);
  }
  for (const Row& row : rows)
    for (const Result& result : row.results)
      if (result.wrong > 0) return 1;
  return 0;
}

Layer parse_shape(const std::string& text) {
  long long m = 0, n = 0, k = 0;
  if (std::sscanf(text.c_str(), "%lldx%lldx%lld", &m, &n, &k) != 3 || m < 1 || n < 1 || k < 1)
    throw InvalidArgument("--shape: '" + text + "' given, allowed is MxNxK, each 1 or more");
  return {"", m, n, k};
}

Settings parse(int argc, char** argv) {
  Settings settings;
  if (const char* const nccl = std::getenv("TANDEM_NCCL_LIBRARY"); nccl != nullptr) settings.nccl = nccl;
  const std::filesystem::path script = std::filesystem::path(argv[0]).parent_path() / "operators_torch.py";
  if (std::filesystem::exists(script)) settings.torch = script.string();
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
    else if (option == "--torch")
      settings.torch = value;
    else if (option == "--op")
      settings.op = value;
    else if (option == "--only")
      settings.only = value;
    else if (option == "--shape")
      settings.shapes.push_back(parse_shape(value));
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
    std::fprintf(stderr, "operators_bench: %s\n", error.what());
    return 1;
  }
}
