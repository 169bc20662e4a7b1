#pragma once
/// The constants by which an operator's open options are chosen: files of machines/operators/*.json, each figure with
/// its unit and source.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/machine.h"

namespace tandem::ops {

struct OperatorTable {
  std::string name;
  std::string description;
  std::vector<std::string> machines;  ///< families, as in SelectionTable::machines
  std::optional<Fabric> fabric = {};  ///< also for machines of this fabric that no table names

  /// Tiles of the GPUs' GEMM.
  struct Tiles {
    double overhead_steps = 0;   ///< cost of a tile beside its depth, in products of one row and one column
    double wave_percent = 0;     ///< least part of a wave of tiles that a shard should be
    double narrow_cost = 0;      ///< most time of narrow tiles over that of the quickest ones, where nothing waits
    Size square_wave_depth = 0;  ///< least depth of a GEMM whose waves are as high as they are wide
    int square_wave_panels = 0;  ///< row panels of such a wave
  } tiles;

  struct Gather {
    Size few_columns = 0;  ///< columns of a PE below which its GEMM waits for the link, between more than two PEs
    int few_columns_splits = 0;
    int sequential_sms = 0;  ///< SMs that gather in the sequential form
  } gather;

  struct Scatter {
    int splits = 0;
    double waves_of_stores = 0;    ///< two PEs: most waves of tiles for which the GEMM's stores carry the chain
    Size copies_depth_of_two = 0;  ///< two PEs: local depth from which on copies carry it
    Size copies_depth = 0;         ///< the same for more PEs
  } scatter;

  struct AllReduce {
    Size whole_gemm_rows = 0;  ///< most rows that selected_options takes sequentially
    int splits_of_two = 0;     ///< most chunks of a shard between two PEs
    int splits = 0;
    int splits_if_deep = 0;                 ///< the same from deep_depth on
    Size deep_depth = 0;                    ///< local depth
    int fetching_sms = 0;                   ///< SMs that fetch sums beside the GEMM, between more than two PEs
    Size few_rows_depth = 0;                ///< least local depth of the GEMM whose blocks add up what they computed
    Size packet_bytes = 0;                  ///< largest result that leaves as packets
    Size one_shot_bytes = 0;                ///< most bytes that a PE sends in one shot
    double one_shot_hidden = 0;             ///< most time of these bytes over that of the GEMM
    Size two_pes_one_shot_above_bytes = 0;  ///< sequential form of two PEs: the all-reduce takes one shot between these
    Size two_pes_one_shot_bytes = 0;
    int two_pes_one_shot_blocks = 0;
  } all_reduce;

  /// More than two PEs: the chain goes by copies from this number of rows times local depth on.
  Size chain_copies_work = 0;

  /// Measured costs beside a GEMM on GPUs. They decide up to how many rows the sequential form is taken.
  struct Measured {
    double collective_us = 0, collective_bytes_per_us = 0;  ///< a whole collective by SMs
    double gather_us = 0;                                   ///< waits of a GEMM that follows the gather
    double chain_us = 0;                                    ///< waits and signals of a chain
    double fetch_us = 0;                                    ///< the fetch of sums between more than two PEs
    double scatter_us = 0, scatter_bytes_per_us = 0;        ///< a whole reduce-scatter between more than two PEs
    double scatter_chain_us = 0;                            ///< the chain of such a reduce-scatter
  } measured;

  /// Costs that the rules for machine models add to the predictions of a GEMM and a link.
  struct Predicted {
    Size small_shard_bytes = 0;  ///< largest shard that SMs always gather
    Size large_shard_bytes = 0;  ///< largest shard that SMs gather if it comes later than the GEMM computes
    int few_pes = 0;             ///< most PEs between which copy engines gather such shards
    double collective_us = 0;
    double stored_us = 0, copied_us = 0, copied_twice_us = 0;
    double shown_share = 0, shown_us = 0;   ///< between more PEs: time of the last pieces that is not hidden
    double start_between_nodes_us = 0;      ///< gathered rows between nodes: start of the sequential form
    double hidden_share_between_nodes = 0;  ///< share of the arrival of such rows during which the GEMM computes
    double least_gain = 1;  ///< between nodes: least time of the sequential form over that of the overlapped one
  } predicted;

  std::vector<Provenance> provenance;  ///< one entry for each figure
};

/// Throws InvalidArgument with the figure's path for what is missing, unknown or out of its range.
OperatorTable parse_operator_table(std::string_view json, const std::string& origin);
/// Returns the table of the machine's family, else of its fabric, else the first one. `tables` are not empty.
const OperatorTable& nearest_table(const std::vector<OperatorTable>& tables, const Machine& machine);
/// Returns the nearest of the tables that the build holds.
const OperatorTable& operator_table(const Machine& machine);

}  // namespace tandem::ops
