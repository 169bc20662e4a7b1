// The entries of operators in the cache file.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"
#include "tune/cache_file.h"
#include "tune/operator_names.h"

namespace tandem {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kEntries = "entries";

Json to_json(const TunedOperator& entry) {
  const OperatorKey& key = entry.key;
  const OperatorOptions& o = entry.options;
  return {{"op", name(key.op)},
          {"m", key.m},
          {"n", key.n},
          {"k", key.k},
          {"dtype", name(key.type)},
          {"b_layout", key.b_layout == BLayout::kNxK ? "NxK" : "KxN"},
          {"pes", key.pes},
          {"pes_per_node", key.pes_per_node},
          {"machine", key.machine},
          {"version", key.version},
          {"fast_accumulation", key.fast_accumulation},
          {"norm", key.norm},
          {"form", name(o.form)},
          {"transport", tune::name(o.copy_by)},
          {"direction", tune::name(o.direction)},
          {"reduction", tune::name(o.reduction)},
          {"shots", o.shots},
          {"splits", o.splits},
          {"order", o.order},
          {"tile_m", o.tile_m},
          {"tile_n", o.tile_n},
          {"communication_sms", o.communication_sms},
          {"us", entry.us},
          {"sequential_us", entry.sequential_us}};
}

/// Older files have no layout, no fast accumulation and no norm.
BLayout parse_layout(const Json& json) {
  const std::string text = json.value("b_layout", "NxK");
  if (text != "NxK" && text != "KxN")
    throw InvalidArgument(fmt::format("b_layout: '{}' given, allowed is NxK or KxN", text));
  return text == "NxK" ? BLayout::kNxK : BLayout::kKxN;
}

TunedOperator from_json(const Json& json) {
  TunedOperator entry;
  OperatorKey& key = entry.key;
  key.op = tune::parse_operator(json.at("op"));
  key.m = json.at("m");
  key.n = json.at("n");
  key.k = json.at("k");
  key.type = parse_dtype(json.at("dtype").get<std::string>());
  key.b_layout = parse_layout(json);
  key.pes = json.at("pes");
  key.pes_per_node = json.at("pes_per_node");
  key.machine = json.at("machine");
  key.version = json.at("version");
  key.fast_accumulation = json.value("fast_accumulation", false);
  key.norm = json.value("norm", "");
  OperatorOptions& o = entry.options;
  o.m = key.m;
  o.n = key.n;
  o.k = key.k;
  o.type = key.type;
  o.b_layout = key.b_layout;
  o.fast_accumulation = key.fast_accumulation;
  o.form = tune::parse_form(json.at("form"));
  o.copy_by = tune::parse_copy_by(json.at("transport"));
  o.direction = tune::parse_direction(json.at("direction"));
  o.reduction = tune::parse_reduction(json.at("reduction"));
  o.shots = json.at("shots");
  o.splits = json.at("splits");
  o.order = json.at("order");
  o.tile_m = json.at("tile_m");
  o.tile_n = json.at("tile_n");
  o.communication_sms = json.at("communication_sms");
  entry.us = json.at("us");
  entry.sequential_us = json.at("sequential_us");
  return entry;
}

/// Returns the entries of this kind, and none where the file is damaged, which sets a warning.
std::vector<TunedOperator> entries_of(const std::string& file, std::string& warning) {
  std::vector<TunedOperator> entries;
  const auto take = [&](const Json& json) {
    for (const Json& entry : json.at(kEntries)) entries.push_back(from_json(entry));
  };
  tune::read_cache(file, warning, take);
  if (!warning.empty()) entries.clear();
  return entries;
}

}  // namespace

std::optional<TunedOperator> find_tuned(const std::string& file, const OperatorKey& key, std::string& warning) {
  for (TunedOperator& entry : entries_of(file, warning))
    if (entry.key == key) return std::move(entry);
  return std::nullopt;
}

void store_tuned(const std::string& file, const TunedOperator& entry) {
  tune::update_cache(file, [&](Json& json) {
    Json entries = Json::array();
    for (const Json& other : json.at(kEntries))
      if (!(from_json(other).key == entry.key)) entries.push_back(other);
    entries.push_back(to_json(entry));
    json[kEntries] = std::move(entries);
  });
}

}  // namespace tandem
