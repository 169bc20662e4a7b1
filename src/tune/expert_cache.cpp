#include "tune/expert_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "base/version.h"
#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"
#include "tune/cache_file.h"
#include "tune/consensus.h"

namespace tandem::tune {

namespace {

constexpr const char* kTimes = "experts";
constexpr const char* kAlgorithms[] = {"packets", "chunks", "fused", "sequential", "overlapped"};

CacheJson to_json(const ExpertKey& key) {
  const ExpertGemmOptions& o = key.problem;
  const ExpertOptions& e = o.experts;
  return {{"op", key.op},
          {"tokens", e.max_tokens},
          {"hidden", e.hidden},
          {"experts", e.experts},
          {"tp_size", e.tp_size},
          {"top_k", e.top_k},
          {"dtype", name(e.type)},
          {"wire", name(e.wire)},
          {"layout", name(e.layout)},
          {"align", e.align},
          {"batches", e.batches},
          {"intermediate", o.intermediate},
          {"activation", static_cast<int>(o.activation)},
          {"tile_m", o.tile_m},
          {"tile_n", o.tile_n},
          {"pes", key.pes},
          {"machine", key.machine},
          {"version", version()}};
}

CacheJson to_json(const ExpertTime& time) {
  return {
      {"algorithm", time.algorithm}, {"blocks", time.blocks}, {"column_chunks", time.column_chunks}, {"us", time.us}};
}

ExpertTime from_json(const CacheJson& json) {
  ExpertTime time{json.at("algorithm"), json.at("blocks"), json.at("column_chunks"), json.at("us")};
  const bool is_known = std::count(std::begin(kAlgorithms), std::end(kAlgorithms), time.algorithm) > 0;
  if (!is_known || time.blocks < 0 || time.column_chunks < 0 || !(time.us > 0))
    throw InvalidArgument(
        fmt::format("times: {} given, allowed are times of {}", json.dump(), fmt::join(kAlgorithms, ", ")));
  return time;
}

/// Fields of a file that was read come in another order.
bool is_same(const CacheJson& key, const CacheJson& other) { return nlohmann::json(key) == nlohmann::json(other); }

/// Returns the times of an entry, or none.
std::vector<ExpertTime> times_of(const CacheJson& file, const CacheJson& key) {
  std::vector<ExpertTime> times;
  if (file.contains(kTimes))
    for (const CacheJson& entry : file.at(kTimes))
      if (is_same(entry.at("key"), key))
        for (const CacheJson& time : entry.at("times")) times.push_back(from_json(time));
  return times;
}

std::string describe(const ExpertTimes& found) {
  std::string text;
  for (const auto& times : found.times) {
    for (const ExpertTime& time : times) text += to_json(time).dump();
    text += ';';
  }
  return text;
}

}  // namespace

ExpertKey expert_key(const World& world, const std::string& op, const ExpertGemmOptions& options) {
  ExpertKey key{op, with_tile(options, world.num_pes()), world.num_pes(), world.machine().name};
  if (op == "dispatch" || op == "combine") {
    key.problem = {};
    key.problem.experts = options.experts;
  }
  return key;
}

void store_expert_times(const std::string& file, const ExpertKey& key, const std::vector<ExpertTime>& times) {
  CacheJson entry{{"key", to_json(key)}, {"times", CacheJson::array()}};
  for (const ExpertTime& time : times) entry["times"].push_back(to_json(time));
  update_cache(file, [&](CacheJson& json) {
    CacheJson all = CacheJson::array();
    if (json.contains(kTimes))
      for (const CacheJson& other : json.at(kTimes))
        if (!is_same(other.at("key"), entry.at("key"))) all.push_back(other);
    all.push_back(entry);
    json[kTimes] = std::move(all);
  });
}

ExpertTimes find_expert_times(World& world, const std::vector<std::string>& ops, const ExpertGemmOptions& options) {
  const char* const file = std::getenv(kOperatorCacheVariable);
  if (file == nullptr || *file == '\0') return {};
  ExpertTimes found{file, std::vector<std::vector<ExpertTime>>(ops.size())};
  std::string warning;
  read_cache(file, warning, [&](const CacheJson& json) {
    for (std::size_t i = 0; i < ops.size(); ++i)
      found.times[i] = times_of(json, to_json(expert_key(world, ops[i], options)));
  });
  if (!warning.empty()) {
    if (world.pe() == 0) log_line(LogLevel::kWarn, [&] { return warning; });
    for (auto& times : found.times) times.clear();
  }
  // The file may change while the PEs read it: entries count where all have the same.
  const bool all_same = Consensus(world).is_same(digest(describe(found)));
  const bool any = std::any_of(found.times.begin(), found.times.end(), [](const auto& one) { return !one.empty(); });
  const bool hit = all_same && any;
  if (world.pe() == 0)
    log_line(LogLevel::kInfo, [&] {
      return fmt::format("{}: {} in {}", fmt::join(ops, ", "), hit ? "tuned forms found" : "no tuned forms", file);
    });
  return hit ? found : ExpertTimes{};
}

std::optional<ExpertTime> fastest_together(const ExpertTimes& found) {
  std::vector<ExpertTime> sums;
  bool is_first = true;
  for (const auto& times : found.times) {
    if (times.empty()) continue;
    std::vector<ExpertTime> both;
    for (const ExpertTime& time : times) {
      const auto other = std::find_if(sums.begin(), sums.end(), [&](const ExpertTime& one) {
        return one.algorithm == time.algorithm && one.blocks == time.blocks;
      });
      if (!is_first && other == sums.end()) continue;
      both.push_back(time);
      if (!is_first) both.back().us += other->us;
    }
    sums = std::move(both);
    is_first = false;
  }
  const auto least =
      std::min_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
  return least == sums.end() ? std::nullopt : std::optional(*least);
}

}  // namespace tandem::tune
