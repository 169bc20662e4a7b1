#pragma once
/// Machine models: the figures that the simulator uses for a machine, each with its source.
///
///   const Machine machine = load_machine("h200x4");           // a builtin model, or the path of a JSON file
///   std::cout << explain(machine);                            // what `tandem machines h200x4` prints
///
/// Units: GB/s are 1e9 bytes of payload a second in one direction, us are microseconds, TFLOP/s are 1e12. A model is
/// plain data; the simulator turns its figures into integer picoseconds. docs/reference/machines.md describes the file
/// format.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/range.h"

namespace tandem {

/// A function through measured points: linear between them, constant outside.
struct Curve {
  std::vector<std::pair<double, double>> points;  ///< (x, y), x ascending; at least one

  /// Returns the value at `x`.
  double at(double x) const;
};

/// The connection between the PEs of one node.
enum class Fabric {
  kSwitched,  ///< each PE has one port into a switch that never blocks (NVSwitch)
  kFullMesh,  ///< each ordered pair of PEs has a link of its own (Infinity Fabric)
  kPcie,      ///< each PE has one port; pairs in different NUMA nodes share a bridge between the sockets
};

/// Returns "switched", "full_mesh" or "pcie".
const char* to_string(Fabric fabric);

/// The processors that run a machine's PEs.
enum class Processor {
  kGpu,  ///< GPUs
  kCpu,  ///< the CPUs of a computer
};

/// Returns "gpu" or "cpu".
const char* to_string(Processor processor);

/// The source of one figure of a model.
struct Provenance {
  std::string field;   ///< full path, for example "link.port_gbps"
  std::string value;   ///< as the file gave it
  std::string unit;    ///< empty for plain counts
  std::string source;  ///< measurement, datasheet or paper
};

/// A machine model. docs/reference/machines.md explains each figure; GB/s are 1e9 bytes a second in one direction.
struct Machine {
  std::string name;                       ///< the name by which load_machine finds it
  std::string description;                ///< one line for people
  Processor processor = Processor::kGpu;  ///< GPUs, unless the model says otherwise
  int pes_per_node = 0;                   ///< GPUs of one node
  int default_nodes = 1;                  ///< nodes of a run that gives no number
  int max_nodes = 1;                      ///< 1: the machine is one node

  /// One GPU, without its links.
  struct Gpu {
    int sm_count = 0;             ///< SMs or compute units
    int max_blocks_per_sm = 0;    ///< blocks that are resident on one SM
    int max_threads_per_sm = 0;   ///< threads that are resident on one SM
    double hbm_gbps = 0;          ///< local memory, bytes read plus bytes written, all SMs busy
    Curve block_hbm_gbps;         ///< blocks that copy locally -> bytes read plus bytes written, GB/s
    double reduce_gbps = 0;       ///< one block's local loads and stores through registers, as for sums
    double local_latency_us = 0;  ///< a dependent load from local memory
    double local_flag_us = 0;     ///< signal between two blocks of one PE, one way, release and acquire included
    /// Concurrent copies. Machine files have no 0; it stands for GPUs that several PEs share, where plans do not choose
    /// copy engines.
    int copy_engines = 0;
    double copy_engine_startup_us = 0;  ///< time before the first byte of a copy moves
    double copy_engine_gbps = 0;        ///< to a peer (the port, or the link of a mesh, limits as well)
    double copy_engine_local_gbps = 0;  ///< bytes copied within the PE; each is read once and written once
    double launch_us = 0;               ///< kernel after kernel in one stream
    double graph_node_us = 0;           ///< kernel after kernel inside one graph
    double kernel_us = 0;               ///< time that a kernel's start and end take beyond an empty kernel's
    double block_sync_us = 0;           ///< from a signal's arrival until all of a block's threads go on
    double l2_mb = 0;                   ///< the cache that all SMs share, in 1e6 bytes
  } gpu;                                ///< one GPU

  /// The links within a node.
  struct Link {
    Fabric fabric = Fabric::kSwitched;  ///< how the PEs of a node are joined
    double port_gbps = 0;               ///< per PE and direction; full mesh: per ordered pair
    double latency_us = 0;       ///< a store until it is visible at the peer (a packet with its own flag, one way)
    double load_latency_us = 0;  ///< a dependent load from a peer, there and back
    double flag_us = 0;          ///< signal one way: st.release.sys until ld.acquire.sys sees it
    Curve store_gbps;            ///< blocks that store -> GB/s to one peer
    Curve load_gbps;             ///< blocks that load -> GB/s from one peer
    double all_to_all_efficiency = 1;  ///< remaining share of those rates when all PEs send to all at once
    bool multicast = false;            ///< multimem operations (NVLS)
    int numa_nodes = 1;                ///< PCIe: sockets; PEs are spread over them in equal consecutive groups
    double bridge_gbps = 0;            ///< PCIe, per direction and ordered pair of sockets; 0 with one NUMA node
    double bridge_latency_us = 0;      ///< added to a path over the bridge
  } link;                              ///< the links within a node

  /// All fields are zero if the machine is one node. A PE uses the NIC (rail) of its local index modulo the count.
  struct Nic {
    int count_per_node = 0;            ///< NICs of one node
    double gbps = 0;                   ///< one NIC, one direction
    double latency_us = 0;             ///< a small put until it is visible at the other node, same rail
    double message_rate_mps = 0;       ///< million messages a second, one NIC
    Curve queue_gbps;                  ///< queue pairs (blocks) that drive it -> GB/s of one NIC
    double issue_us = 0;               ///< cost of posting one message, for the block
    double cross_rail_latency_us = 0;  ///< added where source and destination sit on different rails
    double cross_rail_share = 1;       ///< share of a rail's NICs that can send to other rails at full rate at once
  } nic;                               ///< the network between nodes

  /// The rates of a GEMM on one GPU.
  struct Gemm {
    Curve sustained_tflops;        ///< TFLOP of the problem on one PE -> 16-bit TFLOP/s, all SMs busy in full waves
    double tile_overhead_us = 0;   ///< prologue and epilogue of one tile that the persistent kernel does not hide
    double split_us = 0;           ///< cost of adding up the parts of a tile whose depth several SMs share
    double memory_gbps = 0;        ///< rate at which a GEMM streams its operands
    double sm_memory_gbps = 0;     ///< the part of that rate that one SM can use
    double launch_us = 0;          ///< start and end of a GEMM, kernel after kernel inside one graph
    double one_byte_factor = 0;    ///< rate of 8-bit types relative to 16-bit
    double four_byte_factor = 0;   ///< rate of 32-bit types (TF32) relative to 16-bit
    double eight_byte_factor = 0;  ///< rate of f64 relative to 16-bit

    /// A tile of the library's GEMM.
    struct Tile {
      int m = 0;              ///< rows
      int n = 0;              ///< columns
      double efficiency = 0;  ///< of the sustained rate, 0 to 1
    };
    std::vector<Tile> tiles;  ///< tiles of the library's GEMM
  } gemm;                     ///< the rates of a GEMM

  std::vector<Provenance> provenance;  ///< one entry for each figure, in the order of the structs above
};

/// Returns a builtin model by name, or else the model in the JSON file of that path. Throws InvalidArgument for an
/// unknown name without such a file (with the names that exist), and for everything that parse_machine rejects.
Machine load_machine(const std::string& name_or_file);

/// Names of the builtin models, sorted.
std::vector<std::string> machine_names();

/// Parses a model from JSON text; `origin` names it in errors. Throws InvalidArgument with line and column if it is not
/// JSON. For a missing, unknown or absurd field it names the field's full path, the value given and the values allowed.
Machine parse_machine(std::string_view json, const std::string& origin);

/// Returns every figure of a model with unit and source, as lines of text.
std::string explain(const Machine& machine);

/// The matrix product of one PE: m x k times k x n.
struct GemmShape {
  Size m = 0;             ///< rows of the product
  Size n = 0;             ///< columns of the product
  Size k = 0;             ///< depth
  int element_bytes = 2;  ///< 1, 2, 4 or 8
  /// Groups of rows that are computed one after the other, each over all columns. Each reads the second operand from
  /// memory again if the L2 cache cannot hold it.
  int passes = 1;
  int groups = 1;  ///< second operands, each read once; with more than one, `passes` is 1

  /// Returns the arithmetic operations, in units of 1e12.
  double tflop() const { return 2e-12 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

/// Returns the rate of the whole GPU for a problem of that many TFLOP: 16-bit TFLOP/s times the factor of the element
/// size.
double gemm_sustained_tflops(const Machine& machine, double tflop, int element_bytes);

/// Times of a GEMM's tiles, each over the whole depth on one SM.
struct GemmTileTimes {
  double whole_us = 0;  ///< a wave with a tile for each SM
  double last_us = 0;   ///< the last wave if it has fewer tiles than SMs; else as whole_us
};

/// Returns the times of tile_m x tile_n tiles while `sms` SMs work on `problem`.
///
/// The time of a tile is arithmetic at the sustained rate times the efficiency of the nearest tile of the table, plus
/// the tile overhead. All SMs share the depth of an incomplete last wave if that is faster. All tiles take longer if
/// memory needs about as long as arithmetic, or longer, to deliver the operands (the second one for each pass). A tile
/// at the edge costs as much as a whole one. Throws InvalidArgument for sizes below 1, for an element size other than
/// 1, 2, 4, 8 and for `sms` out of range.
GemmTileTimes gemm_tile_times(const Machine& machine, int tile_m, int tile_n, const GemmShape& problem, int sms);

/// Returns the tile of the table with which `problem` ends first on `sms` SMs (the first in the table among equals).
Machine::Gemm::Tile best_gemm_tile(const Machine& machine, const GemmShape& problem, int sms);

/// Returns the time of a library (cuBLAS-like) GEMM alone on `sms` SMs of one PE: waves of the best tile, plus the
/// launch. Returns 0 for an empty product (m or n is 0). Throws the errors of gemm_tile_times.
double gemm_alone_us(const Machine& machine, Size m, Size n, Size k, int element_bytes, int sms);

}  // namespace tandem
