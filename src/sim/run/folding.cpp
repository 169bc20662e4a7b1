#include "sim/run/folding.h"

#include <fmt/format.h>

#include "sim/run/simulator.h"
#include "tandem/error.h"

namespace tandem::sim {

namespace {

/// A buffer as an array of elements with one for each sender, which repeats.
struct Senders {
  Size element_bytes;
  Size period;  ///< in elements: PEs or nodes; 1: no element belongs to a sender
  Size step;    ///< elements of a node
};

Senders senders_of_words(Size bytes, int blocks, const Topology& topology) {
  constexpr Size word = sizeof(Signal);
  if (bytes / word % (Size{blocks} * topology.num_pes()) == 0)
    return {word, topology.num_pes(), topology.pes_per_node()};
  if (bytes / word == Size{blocks} * topology.nodes()) return {word, topology.nodes(), 1};
  return {word, 1, 0};
}

/// Staging of packets has four slots, each with a part for each block and PE.
Senders senders_of_packets(Size bytes, int blocks, const Topology& topology) {
  const Size parts = 4 * Size{blocks} * topology.num_pes();
  if (bytes == 0 || bytes % parts != 0)
    throw Unsupported(
        "folding: a message with contents given that are no staged packets, allowed are signals and packets");
  return {bytes / parts, topology.num_pes(), topology.pes_per_node()};
}

}  // namespace

void Folding::check(const Simulator& simulator) const {
  const int all = simulator.topology.nodes();
  if (nodes < 1 || all % nodes != 0)
    throw InvalidArgument(fmt::format("folding: {} nodes given, allowed is a divisor of the {} nodes", nodes, all));
  if (!simulator.phantom || simulator.seams.monitor != nullptr || simulator.seams.schedule != nullptr)
    throw InvalidArgument("folding: given for a run with data or with a checker, allowed is a phantom run without one");
  if (simulator.topology.virtual_nodes() || simulator.machine.nic.cross_rail_share < 1)
    throw InvalidArgument(fmt::format("folding: given for machine '{}', allowed are nodes that share nothing but NICs",
                                      simulator.machine.name));
}

bool Folding::runs(const Simulator& simulator, int pe) const { return simulator.topology.node_of(pe) < nodes; }

void Folding::redirect(const Simulator& simulator, NicMessage& message, int blocks) const {
  const Topology& topology = simulator.topology;
  const Memory& memory = simulator.memory;
  const Size moved = topology.node_of(message.to) / nodes * nodes;
  const auto place = [&](void* at, auto senders_of) -> void* {
    const Memory::Buffer buffer = memory.buffer_of(at);
    const Senders senders = senders_of(buffer.bytes, blocks, topology);
    const Size offset = static_cast<const std::byte*>(at) - static_cast<const std::byte*>(buffer.begin);
    const Size sender = offset / senders.element_bytes % senders.period;
    const Size stands_for = (sender + senders.period - moved * senders.step % senders.period) % senders.period;
    return static_cast<std::byte*>(at) + (stands_for - sender) * senders.element_bytes -
           moved * topology.pes_per_node() * memory.stride();
  };
  Delivery& delivery = message.delivery;
  if (delivery.payload) delivery.target = place(delivery.target, senders_of_packets);
  if (delivery.has_signal) delivery.signal.word = static_cast<Signal*>(place(delivery.signal.word, senders_of_words));
}

}  // namespace tandem::sim
