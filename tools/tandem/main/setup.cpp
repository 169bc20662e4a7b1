#include "tools/tandem/main/setup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem::cli {
namespace {

void check_positive(const char* option, const std::optional<int>& value) {
  if (value && *value < 1) throw InvalidArgument(fmt::format("{}: {} given, allowed is 1 or more", option, *value));
}

int count_pes(const Machine& machine, const Arguments& a) {
  const int node = a.pes_per_node.value_or(machine.pes_per_node);
  if (!a.nodes) return a.pes.value_or(machine.default_nodes * machine.pes_per_node);
  // The number of virtual nodes is limited by the PEs of a one-node machine only, which the simulation checks.
  const bool virtual_nodes = machine.max_nodes == 1 && a.pes_per_node;
  constexpr int most = 1 << 20;
  const int most_nodes = virtual_nodes ? most / node : machine.max_nodes;
  if (*a.nodes > most_nodes)
    throw InvalidArgument(fmt::format("--nodes: {} given, allowed on {} is {}", *a.nodes, machine.name,
                                      most_nodes == 1 ? "1" : fmt::format("1 to {}", most_nodes)));
  const int pes = *a.nodes * node;
  if (a.pes && *a.pes != pes)
    throw InvalidArgument(fmt::format("--pes: {} given, but {} nodes of {} PEs are {}; give one of the two", *a.pes,
                                      *a.nodes, node, pes));
  return pes;
}

}  // namespace

Setup make_setup(const Arguments& arguments) {
  check_positive("--nodes", arguments.nodes);
  check_positive("--pes", arguments.pes);
  check_positive("--pes-per-node", arguments.pes_per_node);
  Setup setup;
  setup.machine = load_machine(arguments.machine.empty() ? "h200x4" : arguments.machine);
  setup.pes = count_pes(setup.machine, arguments);
  setup.options.seed = arguments.seed;
  setup.options.phantom = arguments.phantom;
  setup.options.pes_per_node = arguments.pes_per_node.value_or(0);
  return setup;
}

std::string assumption_of(const Setup& setup) {
  if (setup.machine.max_nodes > 1 || setup.pes <= setup.machine.pes_per_node) return "";
  return fmt::format("one fabric joins {} GPUs; the machine of the model has {}", setup.pes,
                     setup.machine.pes_per_node);
}

Size addresses_for(Size wanted, int pes) {
  constexpr Size most = Size{64} << 40;     // half of a process's address space
  constexpr Size beside = Size{256} << 20;  // signals and other memory of a PE besides its data
  return std::min(wanted, most / pes - beside);
}

double computer_memory() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void reserve_memory(Setup& setup, double bytes_per_pe) {
  const double real = computer_memory();
  const double needed = bytes_per_pe * setup.pes;
  constexpr double gib = 1 << 30;
  if (!setup.options.phantom && needed > real)
    throw InvalidArgument(
        fmt::format("the data of {} PEs takes {:.1f} GiB, this computer has {:.1f} GiB: a smaller size or --phantom",
                    setup.pes, needed / gib, real / gib));
  // A plan's staging is at most a few times the user's buffers. Only addresses are reserved here; memory is committed
  // when it is touched.
  constexpr double most = 64.0 * 1024 * gib;
  const double heap = std::min(4 * bytes_per_pe + gib, most);
  setup.options.heap_bytes = std::max(addresses_for(setup.options.heap_bytes, setup.pes), static_cast<Size>(heap));
}

}  // namespace tandem::cli
