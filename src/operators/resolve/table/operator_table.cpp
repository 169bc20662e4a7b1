#include "operators/resolve/table/operator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/builtin_files.h"
#include "base/json_text.h"
#include "operators/resolve/table/operator_table_fields.h"
#include "tandem/error.h"
#include "tune/selection.h"

namespace tandem::ops {

namespace {

using Json = nlohmann::json;
using detail::given;
std::string section_of(const Field& field) {
  const std::string path = field.path;
  return path.substr(0, path.find('.'));
}
std::string key_of(const Field& field) {
  const std::string path = field.path;
  return path.substr(path.find('.') + 1);
}

bool is_section(const std::string& name) {
  return std::ranges::any_of(operator_table_fields(), [&](const Field& field) { return section_of(field) == name; });
}
bool is_field(const std::string& path) {
  return std::ranges::any_of(operator_table_fields(), [&](const Field& field) { return path == field.path; });
}

std::string allowed(const Field& field, bool whole) {
  return fmt::format("a{} number from {} to {}", whole ? " whole" : "", field.low, field.high);
}

class Reader {
 public:
  Reader(Json root, const std::string& origin) : root_(std::move(root)), origin_(origin) {}

  OperatorTable read() {
    check_names();
    table_.name = text(root_, "name", "name");
    table_.description = text(root_, "description", "description");
    read_machines();
    if (root_.contains("fabric")) read_fabric(text(root_, "fabric", "fabric"));
    for (const Field& field : operator_table_fields()) read_figure(field);
    return std::move(table_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InvalidArgument(fmt::format("operator table {}: {}", origin_, what));
  }
  [[noreturn]] void refuse_value(const std::string& path, const Json& value, const std::string& what) const {
    refuse(fmt::format("{}: {} given, allowed is {}", path, given(value), what));
  }

  void check_names() const {
    if (!root_.is_object()) refuse_value("the whole file", root_, "an object");
    for (const auto& [name, value] : root_.items()) {
      if (name == "name" || name == "description" || name == "machines" || name == "fabric") continue;
      if (!is_section(name)) refuse(name + " is not a field of an operator table");
      if (!value.is_object()) refuse_value(name, value, "an object of figures");
      for (const auto& [key, figure] : value.items()) {
        const std::string path = fmt::format("{}.{}", name, key);
        if (!is_field(path)) refuse(path + " is not a field of an operator table");
      }
    }
  }

  std::string text(const Json& parent, const char* key, const std::string& path) const {
    const auto found = parent.find(key);
    if (found == parent.end()) refuse(path + " is missing (a text)");
    if (!found->is_string() || found->get_ref<const std::string&>().empty())
      refuse_value(path, *found, "a text that is not empty");
    return *found;
  }

  void read_machines() {
    const auto found = root_.find("machines");
    if (found == root_.end()) refuse("machines is missing (a list of names)");
    if (!found->is_array()) refuse_value("machines", *found, "a list of names");
    for (const Json& machine : *found) {
      if (!machine.is_string() || machine.get_ref<const std::string&>().empty())
        refuse_value("machines", machine, "a list of names");
      table_.machines.push_back(machine);
    }
  }

  void read_fabric(const std::string& name) {
    for (const Fabric fabric : {Fabric::kSwitched, Fabric::kFullMesh, Fabric::kPcie})
      if (name == to_string(fabric)) table_.fabric = fabric;
    if (!table_.fabric) refuse_value("fabric", name, "\"switched\", \"full_mesh\" or \"pcie\"");
  }

  void read_figure(const Field& field) {
    const bool whole = !std::holds_alternative<double*>(field.slot(table_));
    const std::string missing = fmt::format("{} is missing ({})", field.path, allowed(field, whole));
    const auto section = root_.find(section_of(field));
    if (section == root_.end()) refuse(missing);
    const auto figure = section->find(key_of(field));
    if (figure == section->end()) refuse(missing);
    if (!figure->is_object()) refuse_value(field.path, *figure, "an object with value, unit and source");
    for (const auto& [name, part] : figure->items())
      if (name != "value" && name != "source" && (name != "unit" || *field.unit == '\0'))
        refuse(fmt::format("{}.{} is not a field of an operator table", field.path, name));
    if (*field.unit != '\0') {
      const std::string unit = text(*figure, "unit", fmt::format("{}.unit", field.path));
      if (unit != field.unit) refuse_value(fmt::format("{}.unit", field.path), unit, fmt::format("\"{}\"", field.unit));
    }
    const std::string source = text(*figure, "source", fmt::format("{}.source", field.path));
    const auto value = figure->find("value");
    if (value == figure->end()) refuse(fmt::format("{}.value is missing ({})", field.path, allowed(field, whole)));
    set(field, *value, whole);
    table_.provenance.push_back({field.path, value->dump(), field.unit, source});
  }

  void set(const Field& field, const Json& value, bool whole) {
    const bool is_number = whole ? value.is_number_integer() : value.is_number();
    if (!is_number) refuse_value(field.path, value, allowed(field, whole));
    const auto number = value.get<double>();
    if (!std::isfinite(number) || number < field.low || number > field.high)
      refuse_value(field.path, value, allowed(field, whole));
    std::visit([&](auto* slot) { *slot = value.get<std::remove_pointer_t<decltype(slot)>>(); }, field.slot(table_));
  }

  const Json root_;
  const std::string& origin_;
  OperatorTable table_;
};

const std::vector<OperatorTable>& builtin_tables() {
  static const std::vector<OperatorTable> tables = [] {
    std::vector<OperatorTable> all;
    for (const detail::BuiltinFile& file : detail::builtin_operator_tables())
      all.push_back(parse_operator_table(file.text, std::string(file.name)));
    return all;
  }();
  return tables;
}

}  // namespace

OperatorTable parse_operator_table(std::string_view json, const std::string& origin) {
  return Reader(detail::parse_json(json, "operator table " + origin), origin).read();
}

const OperatorTable& nearest_table(const std::vector<OperatorTable>& tables, const Machine& machine) {
  const auto fit = [&](const OperatorTable& table) { return tune::fit(table.machines, table.fabric, machine); };
  return *std::ranges::max_element(tables, {}, fit);
}

const OperatorTable& operator_table(const Machine& machine) { return nearest_table(builtin_tables(), machine); }

}  // namespace tandem::ops
