#include "gpu/operators_bench_torch.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tandem::bench {

namespace {

constexpr int kSeconds = 150;  // of the whole script

Operator parse(const std::string& text) {
  return text == name(Operator::kAllGatherGemm) ? Operator::kAllGatherGemm : Operator::kGemmReduceScatter;
}

std::string command_of(const Settings& settings, const std::vector<Problem>& problems, int gpus,
                       const std::string& file) {
  std::string command = fmt::format(
      "timeout {} python3 -m torch.distributed.run --standalone --nproc-per-node {} '{}' --out '{}' --rounds {} "
      "--calls {}",
      kSeconds, gpus, settings.torch, file, settings.rounds, settings.calls);
  for (const Problem& problem : problems)
    if (problem.op != Operator::kGemmAllReduce)
      command += fmt::format(" {}:{}:{}:{}", name(problem.op), problem.layer.m, problem.layer.n, problem.layer.k);
  return command;
}

}  // namespace

std::vector<TorchTime> measure_torch(const Settings& settings, const std::vector<Problem>& problems, int gpus) {
  if (settings.torch.empty() || settings.torch == "none") return {};
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("operators_torch_{}.json", std::rand());
  const int code = std::system(command_of(settings, problems, gpus, file.string()).c_str());
  std::vector<TorchTime> times;
  std::ifstream stream(file);
  if (stream) {
    for (const auto& row : nlohmann::json::parse(stream).at("rows"))
      times.push_back({parse(row.at("op")), row.at("m"), row.at("n"), row.at("k"), row.at("us"), row.at("matmul_us"),
                       row.at("graph"), row.at("right")});
  }
  std::filesystem::remove(file);
  if (code != 0 || times.empty())
    std::printf("%s PyTorch: %s ended with %d\n", times.empty() ? "without" : "not all of", settings.torch.c_str(),
                code);
  return times;
}

}  // namespace tandem::bench
