#include "tools/tandem/run/result.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/tandem/main/console.h"

namespace tandem::cli {
namespace {

template <class T>
nlohmann::ordered_json value_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::optional<std::string> trace_hash_text(const Result& r) {
  if (!r.trace_hash) return std::nullopt;
  return fmt::format("{:016x}", *r.trace_hash);
}

std::string line(const char* name, const std::string& value) { return fmt::format("  {:<15}{}\n", name, value); }

std::string check_lines(const Check& check) {
  const std::string error = check.max_error ? fmt::format("{:.2e}", *check.max_error) : "not a number";
  return line("largest error",
              check.checked == 0 ? "none" : fmt::format("{} (expected {})", error, check.expectation)) +
         line("checked", fmt::format("{} elements, {} wrong", check.checked, check.wrong));
}

nlohmann::ordered_json to_json(const OptionChoice& choice) {
  return {
      {"option", choice.option}, {"value", choice.value}, {"source", name(choice.source)}, {"reason", choice.reason}};
}

std::string option_line(const OptionChoice& choice) {
  std::string text = fmt::format("    {:<22}{:<22}{:<8}{}", choice.option, choice.value, name(choice.source),
                                 printable(choice.reason));
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

}  // namespace

std::optional<double> Result::overlap_percent() const {
  if (!sequential_us || !ideal_us || *sequential_us <= *ideal_us) return std::nullopt;
  return 100 * (*sequential_us - time_us) / (*sequential_us - *ideal_us);
}

std::optional<double> Result::algorithm_bandwidth() const {
  if (!bytes || time_us <= 0) return std::nullopt;
  return static_cast<double>(*bytes) * 1e-3 / time_us;
}

std::optional<double> Result::bus_bandwidth() const {
  const auto bandwidth = algorithm_bandwidth();
  if (!bandwidth || !bus_factor) return std::nullopt;
  return *bandwidth * *bus_factor;
}

nlohmann::ordered_json to_json(const Result& r) {
  nlohmann::ordered_json json;
  json["op"] = r.op;
  json["backend"] = r.backend;
  json["predicted"] = r.predicted();
  json["machine"] = r.machine;
  if (!r.assumption.empty()) json["assumption"] = r.assumption;
  json["pes"] = r.pes;
  json["shape"] = value_or_null(r.shape);
  json["bytes"] = value_or_null(r.bytes);
  json["dtype"] = r.dtype;
  json["algorithm"] = r.algorithm;
  if (!r.extras.empty()) json["extras"] = r.extras;
  json["seed"] = r.seed;
  json["phantom"] = r.phantom;
  json["correct"] = r.check ? nlohmann::ordered_json(r.check->correct()) : nlohmann::ordered_json(nullptr);
  json["max_rel_error"] = r.check ? value_or_null(r.check->max_error) : nlohmann::ordered_json(nullptr);
  json["wrong"] = r.check ? nlohmann::ordered_json(r.check->wrong) : nlohmann::ordered_json(nullptr);
  json["time_us"] = r.time_us;
  json["beyond_fit"] = r.beyond_fit.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(r.beyond_fit);
  json["sequential_us"] = value_or_null(r.sequential_us);
  json["ideal_us"] = value_or_null(r.ideal_us);
  json["overlap_percent"] = value_or_null(r.overlap_percent());
  // It is text, because many readers of JSON numbers keep 53 bits only.
  json["trace_hash"] = value_or_null(trace_hash_text(r));
  for (const OptionChoice& choice : r.options) json["options"].push_back(to_json(choice));
  return json;
}

std::string to_table(const Result& r) {
  const std::string size =
      r.shape ? *r.shape : fmt::format("{} bytes ({} elements)", r.bytes.value_or(0), r.count.value_or(0));
  const std::string machine = printable(r.machine);
  std::string text = fmt::format("{}: {} of {} on {} PEs of {}, seed {}{}\n", r.op, size, r.dtype, r.pes, machine,
                                 r.seed, r.phantom ? ", phantom" : "");
  text += line("times", r.predicted() ? fmt::format("predicted with the machine model {}", machine) : "measured");
  if (!r.assumption.empty()) text += line("assumed", r.assumption);
  text += line("algorithm", r.algorithm);
  if (!r.extras.empty()) text += line("with", r.extras);
  text += line("time", fmt::format("{:.2f} us", r.time_us));
  if (!r.beyond_fit.empty()) text += line("beyond the fit", r.beyond_fit);
  if (r.sequential_us)
    text += line("sequential", fmt::format("{:.2f} us, with these options; `tandem tune` looks for the quickest one",
                                           *r.sequential_us));
  if (r.ideal_us) text += line("ideal", fmt::format("{:.2f} us", *r.ideal_us));
  if (const auto overlap = r.overlap_percent()) text += line("overlap", fmt::format("{:.1f} %", *overlap));
  if (const auto bandwidth = r.algorithm_bandwidth())
    text += line("bandwidth",
                 fmt::format("{:.2f} GB/s, bus {:.2f} GB/s", *bandwidth, r.bus_bandwidth().value_or(*bandwidth)));
  if (r.check) text += check_lines(*r.check);
  if (!r.check)
    text += line("checked", r.phantom ? "nothing: phantom" : "nothing: a part by itself has no meaningful result");
  if (const auto hash = trace_hash_text(r)) text += line("trace hash", *hash);
  if (!r.options.empty())
    text += line("options", "each from the first source that has a value: caller, cache, table, rule") +
            fmt::format("    {:<22}{:<22}{:<8}{}\n", "option", "value", "source", "reason");
  for (const OptionChoice& choice : r.options) text += option_line(choice);
  return text;
}

}  // namespace tandem::cli
