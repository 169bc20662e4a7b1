#include "tandem/machine.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/builtin_files.h"
#include "base/text_file.h"
#include "machine/machine_fields.h"
#include "tandem/error.h"

namespace tandem {

double Curve::at(double x) const {
  const auto above =
      std::upper_bound(points.begin(), points.end(), x,
                       [](double value, const std::pair<double, double>& point) { return value < point.first; });
  if (above == points.begin()) return points.front().second;
  if (above == points.end()) return points.back().second;
  const auto below = above - 1;
  return below->second + (above->second - below->second) * (x - below->first) / (above->first - below->first);
}

const char* to_string(Fabric fabric) {
  switch (fabric) {
    case Fabric::kSwitched:
      return "switched";
    case Fabric::kFullMesh:
      return "full_mesh";
    case Fabric::kPcie:
      return "pcie";
  }
  return "unknown";
}

const char* to_string(Processor processor) { return processor == Processor::kCpu ? "cpu" : "gpu"; }

std::optional<Processor> detail::processor_named(std::string_view name) {
  for (const Processor processor : {Processor::kGpu, Processor::kCpu})
    if (name == to_string(processor)) return processor;
  return std::nullopt;
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const detail::BuiltinFile& machine : detail::builtin_machines()) names.emplace_back(machine.name);
  std::sort(names.begin(), names.end());
  return names;
}

Machine load_machine(const std::string& name_or_file) {
  for (const detail::BuiltinFile& machine : detail::builtin_machines())
    if (machine.name == name_or_file) return parse_machine(machine.text, name_or_file);

  const std::optional<std::string> text = detail::read_text_file(name_or_file);
  if (!text)
    throw InvalidArgument(fmt::format("machine: '{}' given, allowed is {} or the path of a readable JSON file",
                                      name_or_file, fmt::join(machine_names(), ", ")));
  return parse_machine(*text, name_or_file);
}

std::string explain(const Machine& machine) {
  std::string text = fmt::format("{}: {}\n", machine.name, machine.description);
  std::string section;
  for (const Provenance& figure : machine.provenance) {
    const std::string current = figure.field.substr(0, figure.field.find('.'));
    if (figure.field.find('.') != std::string::npos && current != section) {
      section = current;
      text += fmt::format("\n{}\n", section);
    }
    const auto fields = detail::machine_fields();
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.path == figure.field; });
    text += fmt::format("  {:<28} {}{}{}\n", figure.field, figure.value, figure.unit.empty() ? "" : " ", figure.unit);
    if (field != fields.end()) text += fmt::format("      {}\n", field->meaning);
    text += fmt::format("      from: {}\n", figure.source);
  }
  return text;
}

}  // namespace tandem
