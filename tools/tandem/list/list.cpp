// `tandem list` and `tandem machines`.
#include <fmt/format.h>

#include "tandem/advanced/collective_traits.h"
#include "tandem/error.h"
#include "tandem/layer/all_reduce_norm.h"
#include "tandem/machine.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/options/usage_message.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {
namespace {

void list_collectives() {
  fmt::print(
      "Collectives (--algo). Those marked * need loads and stores between all PEs: one node only. The others need put "
      "and signal.\n"
      "Without --algo size and nodes decide.\n");
  for (const Collective collective : all_collectives()) {
    fmt::print("\n  {}\n", name(collective));
    for (const AlgorithmInfo& algorithm : collective_algorithms())
      if (algorithm.collective == collective)
        fmt::print("  {} {:<22}{}\n", algorithm.one_node_only ? '*' : ' ', algorithm.name, algorithm.summary);
  }
  fmt::print("\n  all_reduce, all_gather and reduce_scatter with --wire fp8 or int8\n  * {:<22}{}\n", "quantised",
             "codes of 8 bits between PEs, with a scale for each 128 elements: not exact");
  fmt::print("\n  all_reduce_norm\n");
  for (const AllReduceNormAlgorithm& algorithm : all_reduce_norm_algorithms())
    fmt::print("  * {:<22}{}\n", algorithm.name, algorithm.summary);
  fmt::print("\n  merge_heads (without --algo)\n  * {:<22}{}\n", "ll, ll128",
             "every PE sends its partial outputs in packets to the PEs that merge them");
  fmt::print("\n  exchange_heads (without --algo)\n  * {:<22}{}\n", "segments",
             "every PE stores each peer's segments in that peer's outputs");
  fmt::print("\n  dispatch, combine\n  * {:<22}{}\n  * {:<22}{}\n", "packets",
             "rows of tokens to experts, or sums of them back: few tokens", "chunks",
             "the same by stores and a signal behind each chunk: many tokens");
}

void list_operators() {
  fmt::print(
      "\nOperators (--algo takes the form; `tandem check OP --list` lists the cases of checks). All run on one node "
      "and between "
      "nodes.\n");
  for (const Operator op : kOperators) {
    fmt::print("\n  {:<24}{}\n", name(op), summary(op));
    fmt::print("    {:<22}{}\n", "--order", fmt::join(tile_orders(op), ", "));
    fmt::print("    {:<22}ce, sm; --direction push, pull; --splits 1 to 8{}\n", "--transport",
               op == Operator::kGemmAllReduce ? "; --shots 1, 2" : "");
    for (const Form form : kForms) fmt::print("    {:<22}{}\n", name(form), summary(form));
  }
}

void list_types() {
  std::string types, reductions;
  for (const DType type : kDTypes) types += fmt::format(" {}", name(type));
  for (const ReduceOp op : kReduceOps) reductions += fmt::format(" {}", name(op));
  fmt::print("\nElement types (--dtype)\n\n {}\n\nReductions (--op)\n\n {}\n", types, reductions);
}

void list_layers() {
  fmt::print("\nLayers (--model), {} rows unless --m gives another number\n\n", kModelRows);
  for (const Layer& layer : layers())
    fmt::print("  {:<24}{:<20}{}\n", layer.name, Shape{kModelRows, layer.n, layer.k}.text(), layer.meaning);
}

}  // namespace

Subject parse_subject(const std::string& text) {
  std::vector<std::string> names;
  for (const Collective collective : all_collectives()) {
    if (text == name(collective)) return collective;
    names.emplace_back(name(collective));
  }
  for (const LayerSubject& subject : layer_subjects()) {
    if (text == subject.name) return subject;
    names.emplace_back(subject.name);
  }
  for (const Operator op : kOperators) {
    if (text == name(op)) return op;
    names.emplace_back(name(op));
  }
  throw InvalidArgument(not_one_of("OP", text, names));
}

void check_peer(const Subject& subject, const Arguments& a) {
  if (std::holds_alternative<Collective>(subject) && a.versus && *a.versus != "nccl")
    throw InvalidArgument(
        fmt::format("--vs: '{}' given, allowed for {} is nccl", *a.versus, name(std::get<Collective>(subject))));
  if (const auto* const layer = std::get_if<LayerSubject>(&subject); layer != nullptr && a.versus)
    throw InvalidArgument(fmt::format("--vs: '{}' given, but {} has no peer", *a.versus, layer->name));
}

int execute(const ListOptions&) {
  list_collectives();
  list_operators();
  list_types();
  list_layers();
  return kRight;
}

int execute(const MachinesOptions& options) {
  if (!options.machine.empty()) {
    fmt::print("{}", printable(explain(load_machine(options.machine)), Lines::kSeveral));
    return kRight;
  }
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    const std::string nodes = machine.max_nodes == 1 ? "" : fmt::format(", 1 to {} nodes", machine.max_nodes);
    fmt::print("{:<19}{} ({} PEs a node{})\n", name, machine.description, machine.pes_per_node, nodes);
  }
  fmt::print("\n`tandem machines NAME` shows a model's figures with their sources.\n");
  return kRight;
}

}  // namespace tandem::cli
