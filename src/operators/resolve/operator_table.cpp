#include "operators/resolve/operator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/builtin_files.h"
#include "base/json_text.h"
#include "tandem/error.h"
#include "tune/selection.h"

namespace tandem::ops {

namespace {

using Json = nlohmann::json;
using detail::given;
using Slot = std::variant<int*, Size*, double*>;

struct Field {
  const char* path;
  const char* unit;  ///< empty for plain numbers
  double low, high;
  Slot (*slot)(OperatorTable&);
};

constexpr double kMostBytes = 1LL << 46;
constexpr double kMostUs = 10'000;
constexpr double kMostSide = 1 << 30;
constexpr double kMostSms = 4096;
constexpr double kMostSplits = 8;
constexpr double kMostBytesPerUs = 1e8;

const Field kFields[] = {
    {"tiles.overhead_steps", "products", 0, 1e9, [](OperatorTable& t) -> Slot { return &t.tiles.overhead_steps; }},
    {"tiles.wave_percent", "%", 1, 100, [](OperatorTable& t) -> Slot { return &t.tiles.wave_percent; }},
    {"tiles.narrow_cost", "", 1, 10, [](OperatorTable& t) -> Slot { return &t.tiles.narrow_cost; }},
    {"tiles.square_wave_depth", "elements", 1, kMostSide,
     [](OperatorTable& t) -> Slot { return &t.tiles.square_wave_depth; }},
    {"tiles.square_wave_panels", "panels", 1, 1024,
     [](OperatorTable& t) -> Slot { return &t.tiles.square_wave_panels; }},

    {"gather.few_columns", "columns", 0, kMostSide, [](OperatorTable& t) -> Slot { return &t.gather.few_columns; }},
    {"gather.few_columns_splits", "chunks", 1, kMostSplits,
     [](OperatorTable& t) -> Slot { return &t.gather.few_columns_splits; }},
    {"gather.sequential_sms", "SMs", 1, kMostSms, [](OperatorTable& t) -> Slot { return &t.gather.sequential_sms; }},

    {"scatter.splits", "chunks", 1, kMostSplits, [](OperatorTable& t) -> Slot { return &t.scatter.splits; }},
    {"scatter.waves_of_stores", "waves", 0, 1e6, [](OperatorTable& t) -> Slot { return &t.scatter.waves_of_stores; }},
    {"scatter.copies_depth_of_two", "elements", 0, kMostSide,
     [](OperatorTable& t) -> Slot { return &t.scatter.copies_depth_of_two; }},
    {"scatter.copies_depth", "elements", 0, kMostSide,
     [](OperatorTable& t) -> Slot { return &t.scatter.copies_depth; }},

    {"all_reduce.whole_gemm_rows", "rows", 0, kMostSide,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.whole_gemm_rows; }},
    {"all_reduce.splits_of_two", "chunks", 1, kMostSplits,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.splits_of_two; }},
    {"all_reduce.splits", "chunks", 1, kMostSplits, [](OperatorTable& t) -> Slot { return &t.all_reduce.splits; }},
    {"all_reduce.splits_if_deep", "chunks", 1, kMostSplits,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.splits_if_deep; }},
    {"all_reduce.deep_depth", "elements", 0, kMostSide,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.deep_depth; }},
    {"all_reduce.fetching_sms", "SMs", 1, kMostSms,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.fetching_sms; }},
    {"all_reduce.few_rows_depth", "elements", 1, kMostSide,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.few_rows_depth; }},
    {"all_reduce.packet_bytes", "bytes", 0, kMostBytes,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.packet_bytes; }},
    {"all_reduce.one_shot_bytes", "bytes", 0, kMostBytes,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.one_shot_bytes; }},
    {"all_reduce.one_shot_hidden", "", 0, 10, [](OperatorTable& t) -> Slot { return &t.all_reduce.one_shot_hidden; }},
    {"all_reduce.two_pes_one_shot_above_bytes", "bytes", 0, kMostBytes,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.two_pes_one_shot_above_bytes; }},
    {"all_reduce.two_pes_one_shot_bytes", "bytes", 0, kMostBytes,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.two_pes_one_shot_bytes; }},
    {"all_reduce.two_pes_one_shot_blocks", "blocks", 1, kMostSms,
     [](OperatorTable& t) -> Slot { return &t.all_reduce.two_pes_one_shot_blocks; }},

    {"chain.copies_work", "elements", 0, kMostBytes, [](OperatorTable& t) -> Slot { return &t.chain_copies_work; }},

    {"measured.collective_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.measured.collective_us; }},
    {"measured.collective_bytes_per_us", "bytes/us", 1, kMostBytesPerUs,
     [](OperatorTable& t) -> Slot { return &t.measured.collective_bytes_per_us; }},
    {"measured.gather_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.measured.gather_us; }},
    {"measured.chain_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.measured.chain_us; }},
    {"measured.fetch_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.measured.fetch_us; }},
    {"measured.scatter_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.measured.scatter_us; }},
    {"measured.scatter_bytes_per_us", "bytes/us", 1, kMostBytesPerUs,
     [](OperatorTable& t) -> Slot { return &t.measured.scatter_bytes_per_us; }},
    {"measured.scatter_chain_us", "us", 0, kMostUs,
     [](OperatorTable& t) -> Slot { return &t.measured.scatter_chain_us; }},

    {"predicted.small_shard_bytes", "bytes", 0, kMostBytes,
     [](OperatorTable& t) -> Slot { return &t.predicted.small_shard_bytes; }},
    {"predicted.large_shard_bytes", "bytes", 0, kMostBytes,
     [](OperatorTable& t) -> Slot { return &t.predicted.large_shard_bytes; }},
    {"predicted.few_pes", "PEs", 1, 1 << 20, [](OperatorTable& t) -> Slot { return &t.predicted.few_pes; }},
    {"predicted.collective_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.predicted.collective_us; }},
    {"predicted.stored_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.predicted.stored_us; }},
    {"predicted.copied_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.predicted.copied_us; }},
    {"predicted.copied_twice_us", "us", 0, kMostUs,
     [](OperatorTable& t) -> Slot { return &t.predicted.copied_twice_us; }},
    {"predicted.shown_share", "", 0, 1, [](OperatorTable& t) -> Slot { return &t.predicted.shown_share; }},
    {"predicted.shown_us", "us", 0, kMostUs, [](OperatorTable& t) -> Slot { return &t.predicted.shown_us; }},
    {"predicted.start_between_nodes_us", "us", 0, kMostUs,
     [](OperatorTable& t) -> Slot { return &t.predicted.start_between_nodes_us; }},
    {"predicted.hidden_share_between_nodes", "", 0, 1,
     [](OperatorTable& t) -> Slot { return &t.predicted.hidden_share_between_nodes; }},
    {"predicted.least_gain", "", 1, 10, [](OperatorTable& t) -> Slot { return &t.predicted.least_gain; }},
};

std::string section_of(const Field& field) {
  const std::string path = field.path;
  return path.substr(0, path.find('.'));
}
std::string key_of(const Field& field) {
  const std::string path = field.path;
  return path.substr(path.find('.') + 1);
}

bool is_section(const std::string& name) {
  return std::ranges::any_of(kFields, [&](const Field& field) { return section_of(field) == name; });
}
bool is_field(const std::string& path) {
  return std::ranges::any_of(kFields, [&](const Field& field) { return path == field.path; });
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
    for (const Field& field : kFields) read_figure(field);
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
