// Selection tables as JSON.
#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"
#include "base/text_file.h"
#include "machine/machine_fields.h"
#include "tandem/error.h"
#include "tandem/layer/all_reduce_norm.h"
#include "tune/selection.h"

namespace tandem::tune {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using detail::given;

/// The largest size of a buffer. It stays a valid number when multiplied by the PEs, or by eight for nearby sizes.
constexpr Size kMost = Size{1} << 46;

class Reader {
 public:
  Reader(Json root, const std::string& origin) : root_(std::move(root)), origin_(origin) {}

  SelectionTable read() const {
    check_fields("", root_, {"name", "description", "machines", "fabric", "processor", "predicted", "groups"});
    SelectionTable table;
    table.name = text("", root_, "name");
    table.description = text("", root_, "description");
    for (const Json& machine : list("", root_, "machines")) {
      if (!machine.is_string()) refuse_value("machines", machine, "names of machines");
      table.machines.push_back(machine);
    }
    if (root_.contains("fabric")) table.fabric = fabric();
    if (root_.contains("processor")) table.processor = processor();
    if (const auto found = root_.find("predicted"); found != root_.end()) {
      if (!found->is_boolean()) refuse_value("predicted", *found, "true or false");
      table.is_predicted = *found;
    }
    const Json& groups = list("", root_, "groups");
    for (std::size_t i = 0; i < groups.size(); ++i)
      table.groups.push_back(read_group(fmt::format("groups[{}]", i), groups[i]));
    return table;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InvalidArgument(fmt::format("selection table {}: {}", origin_, what));
  }
  [[noreturn]] void refuse_value(const std::string& path, const Json& value, const std::string& allowed) const {
    refuse(fmt::format("{}: {} given, allowed is {}", path, given(value), allowed));
  }
  static std::string join(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }

  void check_fields(const std::string& path, const Json& object, std::initializer_list<const char*> known) const {
    if (!object.is_object()) refuse_value(path.empty() ? "the whole file" : path, object, "an object");
    for (const auto& [name, value] : object.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        refuse(fmt::format("{} is not a field of a selection table", join(path, name)));
  }
  const Json& member(const std::string& path, const Json& parent, const char* key) const {
    const auto found = parent.find(key);
    if (found == parent.end()) refuse(join(path, key) + " is missing");
    return *found;
  }
  std::string text(const std::string& path, const Json& parent, const char* key) const {
    const Json& value = member(path, parent, key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      refuse_value(join(path, key), value, "a text that is not empty");
    return value;
  }
  const Json& list(const std::string& path, const Json& parent, const char* key) const {
    const Json& value = member(path, parent, key);
    if (!value.is_array()) refuse_value(join(path, key), value, "a list");
    return value;
  }
  /// Returns `otherwise` if the value is missing.
  Size whole(const std::string& path, const Json& parent, const char* key, Size most, Size otherwise) const {
    const auto found = parent.find(key);
    if (found == parent.end()) return otherwise;
    const bool fits =
        found->is_number_integer() && found->get<double>() >= 1 && found->get<double>() <= static_cast<double>(most);
    if (!fits) refuse_value(join(path, key), *found, fmt::format("a whole number from 1 to {}", most));
    return *found;
  }

  Fabric fabric() const {
    const std::string given = text("", root_, "fabric");
    for (const Fabric fabric : {Fabric::kSwitched, Fabric::kFullMesh, Fabric::kPcie})
      if (given == to_string(fabric)) return fabric;
    refuse_value("fabric", member("", root_, "fabric"), "\"switched\", \"full_mesh\" or \"pcie\"");
  }

  Processor processor() const {
    const std::string given = text("", root_, "processor");
    if (const auto found = tandem::detail::processor_named(given)) return *found;
    refuse_value("processor", given, tandem::detail::kProcessorNames);
  }

  /// Returns 0 if the values are missing.
  int element_bytes(const std::string& path, const Json& group) const {
    const auto found = group.find("element_bytes");
    if (found == group.end()) return 0;
    for (const int bytes : {1, 2, 4, 8})
      if (*found == bytes) return bytes;
    refuse_value(join(path, "element_bytes"), *found, "1, 2, 4 or 8");
  }

  Group read_group(const std::string& path, const Json& json) const {
    check_fields(path, json, {"op", "nodes", "pes", "element_bytes", "source", "sizes"});
    Group group;
    read_op(path, text(path, json, "op"), group);
    const std::string nodes = text(path, json, "nodes");
    if (nodes != "one" && nodes != "several") refuse_value(path + ".nodes", nodes, "\"one\" or \"several\"");
    group.one_node = nodes == "one";
    group.pes = static_cast<int>(whole(path, json, "pes", 1 << 20, 0));
    group.element_bytes = element_bytes(path, json);
    group.source = text(path, json, "source");
    const Json& sizes = list(path, json, "sizes");
    if (sizes.empty()) refuse(path + ".sizes: an empty list given, at least one choice is needed");
    Size last = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::string at = fmt::format("{}.sizes[{}]", path, i);
      group.sizes.push_back(read_choice(at, sizes[i], group));
      const SizeChoice& choice = group.sizes.back();
      if (choice.up_to_bytes_per_pe > 0) continue;
      if (choice.up_to_bytes <= last) refuse(fmt::format("{}.up_to_bytes: limits must ascend", at));
      last = choice.up_to_bytes;
      if (last == kAnySize && i + 1 < sizes.size())
        refuse(at + ".up_to_bytes is missing: only the last choice has none");
    }
    return group;
  }

  void read_op(const std::string& path, const std::string& op, Group& group) const {
    for (const LayerOp& layer : layer_ops())
      if (layer.name == op) group.layer = op;
    if (!group.layer.empty()) return;
    try {
      group.collective = parse_collective(op);
    } catch (const InvalidArgument& error) {
      refuse(fmt::format("{}.op: {}", path, error.what()));
    }
  }

  SizeChoice read_choice(const std::string& path, const Json& json, const Group& group) const {
    check_fields(path, json,
                 {"up_to_bytes", "up_to_bytes_per_pe", "algorithm", "blocks", "measured_bytes", "measured_us"});
    SizeChoice choice;
    choice.up_to_bytes_per_pe = whole(path, json, "up_to_bytes_per_pe", kMost, 0);
    choice.up_to_bytes = whole(path, json, "up_to_bytes", kMost, choice.up_to_bytes_per_pe > 0 ? 0 : kAnySize);
    choice.algorithm = text(path, json, "algorithm");
    check_algorithm(path, group, choice.algorithm);
    choice.blocks = static_cast<int>(whole(path, json, "blocks", 1 << 16, 0));
    if (json.contains("measured_bytes")) choice.measured_bytes = whole(path, json, "measured_bytes", kMost, 0);
    if (json.contains("measured_us")) {
      const Json& us = json["measured_us"];
      if (!us.is_number() || !(us.get<double>() > 0)) refuse_value(path + ".measured_us", us, "a number above 0");
      choice.us = us;
    }
    return choice;
  }

  void check_algorithm(const std::string& path, const Group& group, const std::string& algorithm) const {
    const std::vector<std::string> known = algorithms_of(group);
    if (std::find(known.begin(), known.end(), algorithm) == known.end())
      refuse(
          fmt::format("{}.algorithm: '{}' given, {} has {}", path, algorithm, op_name(group), fmt::join(known, ", ")));
  }

  static std::vector<std::string> algorithms_of(const Group& group) {
    std::vector<std::string> known;
    for (const LayerOp& layer : layer_ops())
      if (layer.name == group.layer) known = layer.algorithms;
    for (const AlgorithmInfo& info : collective_algorithms())
      if (group.layer.empty() && info.collective == group.collective) known.push_back(info.name);
    return known;
  }

  const Json root_;
  const std::string& origin_;
};

OrderedJson to_json(const Group& group) {
  OrderedJson json;
  json["op"] = op_name(group);
  json["nodes"] = group.one_node ? "one" : "several";
  if (group.pes > 0) json["pes"] = group.pes;
  if (group.element_bytes > 0) json["element_bytes"] = group.element_bytes;
  json["source"] = group.source;
  return json;
}

OrderedJson to_json(const SizeChoice& choice) {
  OrderedJson json = OrderedJson::object();
  if (choice.up_to_bytes_per_pe > 0) json["up_to_bytes_per_pe"] = choice.up_to_bytes_per_pe;
  if (choice.up_to_bytes != kAnySize && choice.up_to_bytes > 0) json["up_to_bytes"] = choice.up_to_bytes;
  json["algorithm"] = choice.algorithm;
  if (choice.blocks > 0) json["blocks"] = choice.blocks;
  if (choice.measured_bytes) json["measured_bytes"] = *choice.measured_bytes;
  if (choice.us) json["measured_us"] = *choice.us;
  return json;
}

}  // namespace

const std::vector<LayerOp>& layer_ops() {
  static const std::vector<LayerOp> all = [] {
    std::vector<std::string> norms;
    for (const AllReduceNormAlgorithm& one : all_reduce_norm_algorithms()) norms.push_back(one.name);
    return std::vector<LayerOp>{
        {"all_reduce_norm", norms}, {"all_reduce_norm_fp8", norms}, {"merge_heads", {"ll", "ll128"}}};
  }();
  return all;
}

std::string op_name(const Group& group) { return group.layer.empty() ? name(group.collective) : group.layer; }

SelectionTable parse_selection(std::string_view json, const std::string& origin) {
  return Reader(detail::parse_json(json, "selection table " + origin), origin).read();
}

/// Writes one line for each choice, so that people can compare files.
std::string to_text(const SelectionTable& table) {
  std::string text = fmt::format("{{\n  \"name\": {},\n  \"description\": {},\n  \"machines\": {},\n",
                                 Json(table.name).dump(), Json(table.description).dump(), Json(table.machines).dump());
  if (table.fabric) text += fmt::format("  \"fabric\": \"{}\",\n", to_string(*table.fabric));
  if (table.processor != Processor::kGpu) text += fmt::format("  \"processor\": \"{}\",\n", to_string(table.processor));
  if (table.is_predicted) text += "  \"predicted\": true,\n";
  text += "  \"groups\": [";
  const char* between_groups = "\n";
  for (const Group& group : table.groups) {
    std::string head = to_json(group).dump();
    head.pop_back();
    text += fmt::format("{}    {}, \"sizes\": [", between_groups, head);
    const char* between = "\n";
    for (const SizeChoice& choice : group.sizes) {
      text += fmt::format("{}      {}", between, to_json(choice).dump());
      between = ",\n";
    }
    text += "\n    ]}";
    between_groups = ",\n";
  }
  return text + "\n  ]\n}\n";
}

SelectionTable load_selection(const std::string& file) {
  const std::optional<std::string> text = detail::read_text_file(file);
  if (!text) throw InvalidArgument(fmt::format("selection table {}: cannot be read", file));
  return parse_selection(*text, file);
}

}  // namespace tandem::tune
