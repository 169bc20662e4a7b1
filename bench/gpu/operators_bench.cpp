// Overlapped operators on all GPUs of this machine, beside cuBLASLt alone, NCCL with cuBLASLt one after the other, and
// PyTorch's asynchronous tensor parallelism.
//
//   operators_bench [--out FILE] [--nccl LIBRARY] [--cublaslt LIBRARY] [--torch SCRIPT|none] [--rounds N] [--calls N]
//                   [--op OP] [--only LAYER] [--shape MxNxK]... [--all] [--try OPTIONS]...
//
// --shape: these global problems in place of the layers of models. --try: a further candidate, such as
// form=overlapped,by=ce,splits=2,tile_n=192. Its keys are form, by (ce, sm), reduction (chain, owner), order, and the
// numbers splits, tile_n, group (panels), sms, shots.
//
// bf16, random normal data. Each program is a CUDA graph of up to --calls (20) calls. The graphs of all programs
// alternate, replay by replay, --rounds (9) times. A time is that of one call, of the slowest PE. Ratios are to
// cuBLASLt's time for the GEMM alone on the gathered problem. They are taken round by round, and the median is shown.
// NCCL runs without NVLink multicast unless NCCL_NVLS_ENABLE is set.
// --all: more candidates than the plan's choice and the sequential form. PyTorch takes part in processes of its own;
// the default script lies beside the program.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gpu/operators_bench_rounds.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::bench {

namespace {

using Json = nlohmann::ordered_json;

double rounded(double us) { return std::round(us * 10) / 10; }

double spread(const std::vector<double>& us) {
  const auto [least, most] = std::minmax_element(us.begin(), us.end());
  return std::round((*most - *least) / median(us) * 1000) / 1000;
}

Json to_json(const std::vector<Row>& rows, const Settings& settings, const std::string& torch, int pes) {
  Json json{{"command", settings.command}, {"rows", Json::array()}};
  if (!torch.empty()) json["torch"] = torch;
  for (const Row& row : rows) {
    const auto& [op, layer] = row.problem;
    Json peers = Json::object(), spreads = Json::object(), ratios = Json::object();
    const auto ratio = [&row](const Result& result) { return std::round(median(ratios_of(row, result)) * 1e4) / 1e4; };
    for (const Result& result : row.results)
      if (result.form.empty()) {
        peers[result.name] = rounded(median(result.us));
        spreads[result.name] = spread(result.us);
        ratios[result.name] = ratio(result);
      }
    for (const Result& result : row.results) {
      if (result.form.empty()) continue;
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
                              {"tandem_us", rounded(median(result.us))},
                              {"peers", peers},
                              {"wrong", result.wrong},
                              {"rounds", result.us.size()},
                              {"spread", spread(result.us)},
                              {"peers_spread", spreads},
                              {"ratio", ratio(result)},
                              {"peers_ratio", ratios}});
    }
  }
  return json;
}

void write(const std::vector<Row>& rows, const Settings& settings, const std::string& torch, int pes) {
  if (settings.out.empty()) return;
  std::ofstream file(settings.out);
  file << to_json(rows, settings, torch, pes).dump(1) << '\n';
  if (!file) throw RuntimeFailure("cannot write " + settings.out);
}

int run_bench(const Settings& settings) {
  const int pes = cuda_devices();
  if (pes == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  std::unique_ptr<cli::NcclLibrary> nccl;
  try {
    nccl = std::make_unique<cli::NcclLibrary>(settings.nccl);
  } catch (const std::exception& error) {
    std::printf("without NCCL: %s\n", error.what());
  }
  std::unique_ptr<TorchPeer> torch;
  if (!settings.torch.empty() && settings.torch != "none") torch = std::make_unique<TorchPeer>(settings.torch, pes);
  CudaOptions options;
  options.heap_bytes = Size{30} << 30;
  options.timeout_s = options.arrival_timeout_s = 4;
  std::vector<Row> rows;
  std::mutex mutex;
  // There may be no time for the rest.
  const auto done = [&] { write(rows, settings, torch ? torch->version() : "", pes); };
  CudaThreads(pes, options).run([&](World& world) {
    measure(world, settings, {nccl.get(), torch.get()}, rows, mutex, done);
  });
  if (torch && !torch->failure().empty())
    std::printf("without PyTorch: %s: %s\n", settings.torch.c_str(), torch->failure().c_str());
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
    else if (option == "--try")
      settings.tries.push_back(value);
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
