#pragma once
/// Which algorithm a collective takes by itself: tables of machines/selection/*.json, written by `tandem tune`.
///
/// How a table is read (docs/reference/machines.md says it to users):
///   1. A table of one's own (option, or TANDEM_SELECTION) comes first, then the builtin tables whose families name
///   this
///      machine, then those of its fabric, then all others of its processors (GPUs or CPUs). What one has no group for
///      is asked of the next.
///   2. Of the groups for this collective, on one node or between several, the one with the nearest number of PEs is
///      taken; of equally near ones a measured one comes before a predicted one, then the nearest element size counts:
///      the same, else a group for all, else the least ratio (of two equal ones the smaller number). Groups for half or
///      twice as many PEs, or beyond, are asked only where no table has a nearer one.
///   3. Of a group the first choice whose limit is not exceeded, and that can run here: on these nodes, with this
///      machine's copy engines and multicast, this operation and type, blocks of so many threads. A group
///      whose last choice has a limit leaves larger sizes to the next one.
///   4. Where that one needs copies of buffers beside it, those of the group's algorithms that were measured at up to
///      eight times or an eighth of the size are compared with it: by their time as it grows with the size (power
///      0.85), not below the first choice's, and their copies. The least is taken.

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/machine.h"

namespace tandem::tune {

inline constexpr Size kAnySize = std::numeric_limits<Size>::max();

/// The algorithm up to a size in bytes of a PE's larger buffer. For a layer's call they are those of its input.
struct SizeChoice {
  Size up_to_bytes = kAnySize;
  Size up_to_bytes_per_pe = 0;  ///< or up to so many for each PE of the team
  std::string algorithm;
  int blocks = 0;                           ///< 0: what suits the size
  std::optional<Size> measured_bytes = {};  ///< the size at which it won, and its time
  std::optional<double> us = {};
};

/// A call of include/tandem/layer that a table can have choices for.
struct LayerOp {
  std::string name;  ///< "all_reduce_norm", "all_reduce_norm_fp8" (with a quantised output) or "merge_heads"
  std::vector<std::string> algorithms;
};
/// Returns all of them.
const std::vector<LayerOp>& layer_ops();

/// The choices for a collective or a layer's call, a number of PEs and an element size.
struct Group {
  Collective collective = Collective::kAllReduce;
  std::string layer = {};  ///< a LayerOp's name, which replaces the collective; empty: none
  bool one_node = true;
  int pes = 0;                    ///< 0: any
  int element_bytes = 0;          ///< 0: any
  std::string source;             ///< who measured it, how and when
  std::vector<SizeChoice> sizes;  ///< limits ascend; the last may have none
};

struct SelectionTable {
  std::string name;
  std::string description;
  /// Families of machines: words of World::machine().name, as "H100" of "NVIDIA H100 80GB HBM3".
  std::vector<std::string> machines;
  std::vector<Group> groups;
  std::optional<Fabric> fabric = {};      ///< also for machines of this fabric that no table names
  bool is_predicted = false;              ///< made from a machine model
  Processor processor = Processor::kGpu;  ///< builtin tables serve no machines of other processors
};

/// Whether `machine` has `family` as a word, in any case of letters: letters may follow it, digits may not.
bool is_of_family(std::string_view machine, std::string_view family);

/// How well a table suits a machine: the length of the longest of its families that the machine is of, else 0 for its
/// fabric, else -1. The best one counts.
int fit(const std::vector<std::string>& families, std::optional<Fabric> fabric, const Machine& machine);

/// Throws InvalidArgument with line and column for what is not JSON, and with the field for what is missing, unknown or
/// absurd.
SelectionTable parse_selection(std::string_view json, const std::string& origin);
/// The text of a file that parse_selection takes.
std::string to_text(const SelectionTable& table);
/// Throws InvalidArgument where the file cannot be read, and what parse_selection throws.
SelectionTable load_selection(const std::string& file);
/// Returns "all_reduce" or another name, as a table's field `op` has it.
std::string op_name(const Group& group);
/// Returns the tables of the build.
const std::vector<SelectionTable>& builtin_tables();

/// A query to a table.
struct Query {
  Collective collective = Collective::kAllReduce;
  bool one_node = true;
  int pes = 1;
  Size element_bytes = 4;
  Size bytes = 0;
  std::string layer = {};  ///< see Group::layer
};

/// Microseconds that a call takes beside an algorithm.
using Beside = std::function<double(const std::string& algorithm)>;

/// A choice with the table and the group that it comes from.
struct SelectedChoice : SizeChoice {
  std::string table;
  std::string source;  ///< Group::source
};

/// Rules 2 to 4: nothing where no group fits. `can_run` is asked for algorithms' names; no `beside`: nothing is copied.
std::optional<SelectedChoice> choose(const SelectionTable& table, const Query& query,
                                     const std::function<bool(const std::string&)>& can_run, const Beside& beside = {});

/// Returns whether there is a table of one's own: `file`, or that of TANDEM_SELECTION.
bool has_own_table(const std::string& file);

/// All four rules. A layer's call is left to its own rule rather than to a group for half or twice as many PEs. `file`:
/// a table of one's own; empty: TANDEM_SELECTION, if that is set.
std::optional<SelectedChoice> choose(const Machine& machine, const std::string& file, const Query& query,
                                     const std::function<bool(const std::string&)>& can_run, const Beside& beside = {});

}  // namespace tandem::tune
