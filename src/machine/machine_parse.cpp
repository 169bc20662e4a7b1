/// Parser of machine models. In the JSON every figure is an object with value, unit and source.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "base/json_text.h"
#include "machine/machine_fields.h"
#include "tandem/error.h"

namespace tandem {
namespace {

using detail::Field;
using detail::given;
using detail::Presence;
using detail::Tiles;
using Json = nlohmann::json;

bool is_known(const std::string& path) {
  const auto fields = detail::machine_fields();
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.path == path; });
}

bool is_section(const std::string& name) { return name == "gpu" || name == "link" || name == "nic" || name == "gemm"; }

class Reader {
 public:
  Reader(Json root, const std::string& origin) : root_(std::move(root)), origin_(origin) {}

  Machine read();

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InvalidArgument(fmt::format("machine model {}: {}", origin_, what));
  }
  [[noreturn]] void refuse_value(const std::string& path, const Json& value, const std::string& what) const {
    refuse(fmt::format("{}: {} given, allowed is {}", path, given(value), what));
  }

  std::string text(const Json& parent, const char* key, const std::string& path) const;
  void read_processor(const std::string& name);
  void check_names() const;
  const Json* find(const std::string& path) const;
  void read_figure(const Field& field, const Json& figure);
  bool belongs(const Field& field) const;
  double number(const Field& field, const Json& value) const;
  void check_whole() const;

  void set(const Field& field, const Json& value, int* slot) const;
  void set(const Field& field, const Json& value, double* slot) const { *slot = number(field, value); }
  void set(const Field& field, const Json& value, bool* slot) const;
  void set(const Field& field, const Json& value, Fabric* slot) const;
  void set(const Field& field, const Json& value, Curve* slot) const;
  void set(const Field& field, const Json& value, Tiles* slot) const;

  const Json root_;
  const std::string& origin_;
  Machine machine_;
};

std::string Reader::text(const Json& parent, const char* key, const std::string& path) const {
  const auto found = parent.find(key);
  if (found == parent.end()) refuse(fmt::format("{} is missing (a text)", path));
  if (!found->is_string() || found->get_ref<const std::string&>().empty())
    refuse_value(path, *found, "a text that is not empty");
  return found->get<std::string>();
}

void Reader::read_processor(const std::string& name) {
  const auto found = detail::processor_named(name);
  if (!found) refuse_value("processor", name, detail::kProcessorNames);
  machine_.processor = *found;
}

/// Rejects names that no model has, so that a misspelt field is not ignored.
void Reader::check_names() const {
  if (!root_.is_object()) refuse_value("the whole file", root_, "an object");
  for (const auto& [name, value] : root_.items()) {
    if (name == "name" || name == "description" || name == "processor") continue;
    if (!is_section(name)) {
      if (name.find('.') != std::string::npos || !is_known(name)) refuse(name + " is not a field of a machine model");
      continue;
    }
    if (!value.is_object()) refuse_value(name, value, "an object of figures");
    for (const auto& [field, figure] : value.items())
      if (!is_known(fmt::format("{}.{}", name, field)))
        refuse(fmt::format("{}.{} is not a field of a machine model", name, field));
  }
}

const Json* Reader::find(const std::string& path) const {
  const auto dot = path.find('.');
  const Json* parent = &root_;
  if (dot != std::string::npos) {
    const auto section = root_.find(path.substr(0, dot));
    if (section == root_.end()) return nullptr;
    parent = &*section;
  }
  const auto figure = parent->find(path.substr(dot == std::string::npos ? 0 : dot + 1));
  return figure == parent->end() ? nullptr : &*figure;
}

/// Fields are read in the order of the table, so `max_nodes` and `link.fabric` are known before fields that depend on
/// them.
bool Reader::belongs(const Field& field) const {
  switch (field.presence) {
    case Presence::kAll:
      return true;
    case Presence::kPcie:
      return machine_.link.fabric == Fabric::kPcie;
    case Presence::kNic:
      return machine_.max_nodes > 1;
  }
  return true;
}

void Reader::read_figure(const Field& field, const Json& figure) {
  if (!figure.is_object()) refuse_value(field.path, figure, "an object with value, unit and source");
  const detail::Slot slot = field.slot(machine_);
  const char* const key =
      std::holds_alternative<Curve*>(slot) || std::holds_alternative<Tiles*>(slot) ? "points" : "value";
  for (const auto& [name, part] : figure.items())
    if (name != key && name != "source" && (name != "unit" || *field.unit == '\0'))
      refuse(fmt::format("{}.{} is not a field of a machine model", field.path, name));
  const auto value = figure.find(key);
  if (value == figure.end()) refuse(fmt::format("{}.{} is missing ({})", field.path, key, allowed(field)));
  if (*field.unit != '\0') {
    const std::string unit = text(figure, "unit", std::string(field.path) + ".unit");
    if (unit != field.unit) refuse_value(std::string(field.path) + ".unit", unit, fmt::format("\"{}\"", field.unit));
  }
  const std::string source = text(figure, "source", std::string(field.path) + ".source");
  std::visit([&](auto* typed) { set(field, *value, typed); }, slot);
  machine_.provenance.push_back(
      {field.path, value->is_string() ? value->get<std::string>() : value->dump(), field.unit, source});
}

double Reader::number(const Field& field, const Json& value) const {
  if (!value.is_number()) refuse_value(field.path, value, allowed(field));
  const double result = value.get<double>();
  const bool low_enough = field.low > 0 ? result >= field.low : result > 0;
  if (!std::isfinite(result) || !low_enough || result > field.high) refuse_value(field.path, value, allowed(field));
  return result;
}

void Reader::set(const Field& field, const Json& value, int* slot) const {
  if (!value.is_number_integer()) refuse_value(field.path, value, allowed(field));
  *slot = static_cast<int>(number(field, value));
}

void Reader::set(const Field& field, const Json& value, bool* slot) const {
  if (!value.is_boolean()) refuse_value(field.path, value, allowed(field));
  *slot = value.get<bool>();
}

void Reader::set(const Field& field, const Json& value, Fabric* slot) const {
  for (const Fabric fabric : {Fabric::kSwitched, Fabric::kFullMesh, Fabric::kPcie})
    if (value == to_string(fabric)) {
      *slot = fabric;
      return;
    }
  refuse_value(field.path, value, allowed(field));
}

void Reader::set(const Field& field, const Json& value, Curve* slot) const {
  if (!value.is_array() || value.empty()) refuse_value(field.path, value, allowed(field));
  double last = 0;
  for (const Json& point : value) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number())
      refuse_value(field.path, point, allowed(field));
    const double x = point[0].get<double>();
    if (!std::isfinite(x) || x <= last) refuse_value(field.path, point, allowed(field));
    slot->points.emplace_back(x, number(field, point[1]));
    last = x;
  }
}

void Reader::set(const Field& field, const Json& value, Tiles* slot) const {
  if (!value.is_array() || value.empty()) refuse_value(field.path, value, allowed(field));
  for (const Json& tile : value) {
    const bool shaped =
        tile.is_array() && tile.size() == 3 && tile[0].is_number_integer() && tile[1].is_number_integer();
    if (!shaped) refuse_value(field.path, tile, allowed(field));
    const auto m = tile[0].get<Size>();
    const auto n = tile[1].get<Size>();
    if (m < 8 || m > 1024 || n < 8 || n > 1024) refuse_value(field.path, tile, allowed(field));
    slot->push_back({static_cast<int>(m), static_cast<int>(n), number(field, tile[2])});
  }
}

/// Checks conditions between several figures.
void Reader::check_whole() const {
  if (machine_.default_nodes > machine_.max_nodes)
    refuse(fmt::format("default_nodes: {} given, allowed is 1 to max_nodes, {}", machine_.default_nodes,
                       machine_.max_nodes));
  if (machine_.link.numa_nodes > machine_.pes_per_node)
    refuse(fmt::format("link.numa_nodes: {} given, allowed is 1 to pes_per_node, {}", machine_.link.numa_nodes,
                       machine_.pes_per_node));
}

Machine Reader::read() {
  check_names();
  machine_.name = text(root_, "name", "name");
  machine_.description = text(root_, "description", "description");
  if (root_.contains("processor")) read_processor(text(root_, "processor", "processor"));
  for (const Field& field : detail::machine_fields()) {
    const Json* const figure = find(field.path);
    if (belongs(field)) {
      if (figure == nullptr) refuse(fmt::format("{} is missing ({})", field.path, allowed(field)));
      read_figure(field, *figure);
    } else if (figure != nullptr) {
      refuse(
          fmt::format("{} is given, but only machines {} have it", field.path,
                      field.presence == Presence::kPcie ? "whose link.fabric is \"pcie\"" : "with max_nodes above 1"));
    }
  }
  check_whole();
  return std::move(machine_);
}

}  // namespace

Machine parse_machine(std::string_view json, const std::string& origin) {
  return Reader(detail::parse_json(json, "machine model " + origin), origin).read();
}

}  // namespace tandem
