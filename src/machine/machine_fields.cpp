#include "machine/machine_fields.h"

#include <fmt/format.h>

namespace tandem::detail {
namespace {

// The simulator counts in whole MB/s. The limits keep the smallest rate above zero after all efficiencies, also for the
// share of one warp.
constexpr double min_gbps = 0.1;
constexpr double min_efficiency = 0.1;
constexpr double max_gbps = 100'000;
constexpr double max_us = 10'000;

constexpr Presence all = Presence::kAll;
constexpr Presence pcie = Presence::kPcie;
constexpr Presence nic = Presence::kNic;

const Field fields[] = {
    {"pes_per_node", "PEs", 1, 72, all, "GPUs of one node", [](Machine& m) -> Slot { return &m.pes_per_node; }},
    {"default_nodes", "nodes", 1, 1 << 20, all, "nodes of a run that gives no number",
     [](Machine& m) -> Slot { return &m.default_nodes; }},
    {"max_nodes", "nodes", 1, 1 << 20, all, "most nodes of a run", [](Machine& m) -> Slot { return &m.max_nodes; }},

    {"gpu.sm_count", "SMs", 1, 4096, all, "SMs (compute units) of one PE",
     [](Machine& m) -> Slot { return &m.gpu.sm_count; }},
    {"gpu.max_blocks_per_sm", "blocks", 1, 1024, all, "thread blocks resident on one SM",
     [](Machine& m) -> Slot { return &m.gpu.max_blocks_per_sm; }},
    {"gpu.max_threads_per_sm", "threads", 32, 65536, all, "threads resident on one SM",
     [](Machine& m) -> Slot { return &m.gpu.max_threads_per_sm; }},
    {"gpu.hbm_gbps", "GB/s", min_gbps, max_gbps, all, "local memory, read plus written",
     [](Machine& m) -> Slot { return &m.gpu.hbm_gbps; }},
    {"gpu.block_hbm_gbps", "blocks -> GB/s", min_gbps, max_gbps, all,
     "local copy by that many blocks, read plus written", [](Machine& m) -> Slot { return &m.gpu.block_hbm_gbps; }},
    {"gpu.reduce_gbps", "GB/s", min_gbps, max_gbps, all,
     "local loads and stores through one block's registers, as sums",
     [](Machine& m) -> Slot { return &m.gpu.reduce_gbps; }},
    {"gpu.local_latency_us", "us", 0, max_us, all, "dependent load from local memory",
     [](Machine& m) -> Slot { return &m.gpu.local_latency_us; }},
    {"gpu.local_flag_us", "us", 0, max_us, all, "signal between two blocks of one PE, one way",
     [](Machine& m) -> Slot { return &m.gpu.local_flag_us; }},
    {"gpu.copy_engines", "copies", 1, 64, all, "copies under way at once",
     [](Machine& m) -> Slot { return &m.gpu.copy_engines; }},
    {"gpu.copy_engine_startup_us", "us", 0, max_us, all, "before a copy's first byte moves",
     [](Machine& m) -> Slot { return &m.gpu.copy_engine_startup_us; }},
    {"gpu.copy_engine_gbps", "GB/s", min_gbps, max_gbps, all, "copy to a peer",
     [](Machine& m) -> Slot { return &m.gpu.copy_engine_gbps; }},
    {"gpu.copy_engine_local_gbps", "GB/s", min_gbps, max_gbps, all, "bytes copied within the PE",
     [](Machine& m) -> Slot { return &m.gpu.copy_engine_local_gbps; }},
    {"gpu.launch_us", "us", 0, max_us, all, "kernel after kernel in one stream",
     [](Machine& m) -> Slot { return &m.gpu.launch_us; }},
    {"gpu.graph_node_us", "us", 0, max_us, all, "kernel after kernel in one graph",
     [](Machine& m) -> Slot { return &m.gpu.graph_node_us; }},
    {"gpu.kernel_us", "us", 0, max_us, all, "start and end of a kernel beyond an empty one's",
     [](Machine& m) -> Slot { return &m.gpu.kernel_us; }},
    {"gpu.block_sync_us", "us", 0, max_us, all, "from a signal's arrival until all threads of a block go on",
     [](Machine& m) -> Slot { return &m.gpu.block_sync_us; }},
    {"gpu.l2_mb", "MB", 0, 1e6, all, "cache that all SMs share", [](Machine& m) -> Slot { return &m.gpu.l2_mb; }},

    {"link.fabric", "", 0, 0, all, "how the PEs of a node are joined",
     [](Machine& m) -> Slot { return &m.link.fabric; }},
    {"link.port_gbps", "GB/s", min_gbps, max_gbps, all, "per PE and direction; full mesh: per ordered pair",
     [](Machine& m) -> Slot { return &m.link.port_gbps; }},
    {"link.latency_us", "us", 0, max_us, all, "store until it is visible at the peer",
     [](Machine& m) -> Slot { return &m.link.latency_us; }},
    {"link.load_latency_us", "us", 0, max_us, all, "dependent load from a peer",
     [](Machine& m) -> Slot { return &m.link.load_latency_us; }},
    {"link.flag_us", "us", 0, max_us, all, "signal to a peer, one way, release and acquire included",
     [](Machine& m) -> Slot { return &m.link.flag_us; }},
    {"link.store_gbps", "blocks -> GB/s", min_gbps, max_gbps, all, "stores to one peer by that many blocks",
     [](Machine& m) -> Slot { return &m.link.store_gbps; }},
    {"link.load_gbps", "blocks -> GB/s", min_gbps, max_gbps, all, "loads from one peer by that many blocks",
     [](Machine& m) -> Slot { return &m.link.load_gbps; }},
    {"link.all_to_all_efficiency", "", min_efficiency, 1, all, "share of the rates left when all send to all",
     [](Machine& m) -> Slot { return &m.link.all_to_all_efficiency; }},
    {"link.multicast", "", 0, 0, all, "multimem operations", [](Machine& m) -> Slot { return &m.link.multicast; }},
    {"link.numa_nodes", "sockets", 1, 16, pcie, "sockets over which the PEs are spread",
     [](Machine& m) -> Slot { return &m.link.numa_nodes; }},
    {"link.bridge_gbps", "GB/s", min_gbps, max_gbps, pcie, "between two sockets, per direction",
     [](Machine& m) -> Slot { return &m.link.bridge_gbps; }},
    {"link.bridge_latency_us", "us", 0, max_us, pcie, "added by the way between two sockets",
     [](Machine& m) -> Slot { return &m.link.bridge_latency_us; }},

    {"nic.count_per_node", "NICs", 1, 64, nic, "NICs (rails) of one node",
     [](Machine& m) -> Slot { return &m.nic.count_per_node; }},
    {"nic.gbps", "GB/s", min_gbps, max_gbps, nic, "one NIC, one direction",
     [](Machine& m) -> Slot { return &m.nic.gbps; }},
    {"nic.latency_us", "us", 0, max_us, nic, "small put until it is visible at the other node",
     [](Machine& m) -> Slot { return &m.nic.latency_us; }},
    {"nic.message_rate_mps", "M messages/s", 0, max_gbps, nic, "messages of one NIC",
     [](Machine& m) -> Slot { return &m.nic.message_rate_mps; }},
    {"nic.queue_gbps", "queues -> GB/s", min_gbps, max_gbps, nic, "one NIC driven by that many queue pairs",
     [](Machine& m) -> Slot { return &m.nic.queue_gbps; }},
    {"nic.issue_us", "us", 0, max_us, nic, "cost of posting a message, for the block",
     [](Machine& m) -> Slot { return &m.nic.issue_us; }},
    {"nic.cross_rail_latency_us", "us", 0, max_us, nic, "added between different rails",
     [](Machine& m) -> Slot { return &m.nic.cross_rail_latency_us; }},
    {"nic.cross_rail_share", "", min_efficiency, 1, nic,
     "share of a rail's NICs that can send to other rails at full rate at once",
     [](Machine& m) -> Slot { return &m.nic.cross_rail_share; }},

    {"gemm.sustained_tflops", "TFLOP -> TFLOP/s", 0, 100'000, all, "16-bit rate in full waves, by size of the problem",
     [](Machine& m) -> Slot { return &m.gemm.sustained_tflops; }},
    {"gemm.tile_overhead_us", "us", 0, max_us, all, "prologue and epilogue of one tile",
     [](Machine& m) -> Slot { return &m.gemm.tile_overhead_us; }},
    {"gemm.split_us", "us", 0, max_us, all, "adding up the parts of a tile whose depth several SMs share",
     [](Machine& m) -> Slot { return &m.gemm.split_us; }},
    {"gemm.memory_gbps", "GB/s", min_gbps, max_gbps, all, "at which a GEMM streams its operands",
     [](Machine& m) -> Slot { return &m.gemm.memory_gbps; }},
    {"gemm.sm_memory_gbps", "GB/s", min_gbps, max_gbps, all, "one SM's most of gemm.memory_gbps",
     [](Machine& m) -> Slot { return &m.gemm.sm_memory_gbps; }},
    {"gemm.launch_us", "us", 0, max_us, all, "start and end of a GEMM in a graph",
     [](Machine& m) -> Slot { return &m.gemm.launch_us; }},
    {"gemm.one_byte_factor", "", 0, 16, all, "rate of 8-bit types relative to 16-bit",
     [](Machine& m) -> Slot { return &m.gemm.one_byte_factor; }},
    {"gemm.four_byte_factor", "", 0, 16, all, "rate of 32-bit types relative to 16-bit",
     [](Machine& m) -> Slot { return &m.gemm.four_byte_factor; }},
    {"gemm.eight_byte_factor", "", 0, 16, all, "rate of f64 relative to 16-bit",
     [](Machine& m) -> Slot { return &m.gemm.eight_byte_factor; }},
    {"gemm.tiles", "m, n, efficiency", 0, 1, all, "tiles of the library's GEMM",
     [](Machine& m) -> Slot { return &m.gemm.tiles; }},
};

std::string range(double low, double high) {
  return low > 0 ? fmt::format("from {} to {}", low, high) : fmt::format("above 0 up to {}", high);
}

struct AllowedText {
  const Field& field;

  std::string operator()(int*) const { return "a whole number " + range(field.low, field.high); }
  std::string operator()(double*) const { return "a number " + range(field.low, field.high); }
  std::string operator()(bool*) const { return "true or false"; }
  std::string operator()(Fabric*) const { return "\"switched\", \"full_mesh\" or \"pcie\""; }
  std::string operator()(Curve*) const {
    return fmt::format("a list of points [x, y], x ascending from above 0, y {}", range(field.low, field.high));
  }
  std::string operator()(Tiles*) const {
    return "a list of tiles [m, n, efficiency], m and n from 8 to 1024, efficiency above 0 up to 1";
  }
};

}  // namespace

std::span<const Field> machine_fields() { return fields; }

std::string allowed(const Field& field) {
  Machine scratch;
  return std::visit(AllowedText{field}, field.slot(scratch));
}

}  // namespace tandem::detail
