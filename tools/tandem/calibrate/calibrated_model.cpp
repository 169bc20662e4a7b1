// Measurements as the JSON of a machine model.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/builtin_files.h"
#include "base/text_file.h"
#include "tandem/error.h"
#include "tandem/machine.h"
#include "tools/tandem/calibrate/calibrate.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string base_text(const std::string& base) {
  load_machine(base);  // throws a precise error
  for (const detail::BuiltinFile& file : detail::builtin_machines())
    if (file.name == base) return std::string(file.text);
  return detail::read_text_file(base).value_or("");
}

/// Rounds to three digits; more would be noise.
double rounded(double value) {
  if (value <= 0) return value;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}
std::string digits(double value) { return fmt::format("{:.6g}", rounded(value)); }

class Model {
 public:
  Model(Json json, std::string base, std::string source)
      : json_(std::move(json)), base_(std::move(base)), source_(std::move(source)) {
    for (auto& [key, value] : json_.items()) {
      if (value.is_object() && value.contains("source")) note_base(value);
      if (!value.is_object() || value.contains("source")) continue;
      for (auto& [field, figure] : value.items()) note_base(figure);
    }
  }

  void set(const std::string& path, const Json& value) {
    Json& figure = at(path);
    figure["value"] = value;
    figure["source"] = source_;
  }
  void set_figure(const std::string& path, double value) { set(path, Json::parse(digits(value))); }
  void set(const std::string& path, const std::vector<std::pair<int, double>>& points) {
    Json& figure = at(path);
    figure["points"] = Json::array();
    for (const auto& [x, y] : points) figure["points"].push_back({x, Json::parse(digits(y))});
    figure["source"] = source_;
  }
  Json& json() { return json_; }

 private:
  void note_base(Json& figure) const { figure["source"] = fmt::format("as {}, not measured here", base_); }
  Json& at(const std::string& path) {
    const auto dot = path.find('.');
    return dot == std::string::npos ? json_[path] : json_[path.substr(0, dot)][path.substr(dot + 1)];
  }

  Json json_;
  std::string base_;
  std::string source_;
};

}  // namespace

std::string calibrated_model(const Calibration& c, const std::string& base, const std::string& name,
                             const std::string& source) {
  Model model(Json::parse(base_text(base)), base, source);
  model.json()["name"] = name;
  model.json()["description"] = fmt::format("{} x {}, measured by tandem calibrate", c.gpus, c.gpu_name);
  model.set("pes_per_node", c.gpus);
  model.set("gpu.sm_count", c.sm_count);
  model.set("gpu.max_blocks_per_sm", c.max_blocks_per_sm);
  model.set("gpu.max_threads_per_sm", c.max_threads_per_sm);
  model.set_figure("gpu.hbm_gbps", c.hbm_gbps);
  model.set("gpu.block_hbm_gbps", c.block_hbm_gbps);
  model.set_figure("gpu.local_latency_us", c.local_latency_us);
  model.set_figure("gpu.local_flag_us", c.local_flag_us);
  model.set_figure("gpu.copy_engine_startup_us", c.copy_engine_startup_us);
  model.set_figure("gpu.copy_engine_gbps", c.copy_engine_gbps);
  model.set_figure("gpu.copy_engine_local_gbps", c.copy_engine_local_gbps);
  model.set_figure("gpu.launch_us", c.launch_us);
  model.set_figure("gpu.graph_node_us", c.graph_node_us);
  model.set_figure("link.port_gbps", c.port_gbps);
  model.set_figure("link.latency_us", c.latency_us);
  model.set_figure("link.load_latency_us", c.load_latency_us);
  model.set_figure("link.flag_us", c.flag_us);
  model.set("link.store_gbps", c.store_gbps);
  model.set("link.load_gbps", c.load_gbps);
  model.set_figure("link.all_to_all_efficiency", c.all_to_all_efficiency);
  // One line for each figure, as people write them.
  std::string text = "{\n";
  const char* between = "";
  for (const auto& [key, value] : model.json().items()) {
    text += fmt::format("{}  {}: ", between, Json(key).dump());
    between = ",\n";
    if (!value.is_object() || value.contains("source")) {
      text += value.dump();
      continue;
    }
    text += "{";
    const char* inner = "\n";
    for (const auto& [field, figure] : value.items()) {
      text += fmt::format("{}    {}: {}", inner, Json(field).dump(), figure.dump());
      inner = ",\n";
    }
    text += "\n  }";
  }
  text += "\n}\n";
  parse_machine(text, name);
  return text;
}

}  // namespace tandem::cli
