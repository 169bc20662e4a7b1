#include "operators/resolve/table/operator_table_fields.h"

#include "operators/resolve/operator_check.h"

namespace tandem::ops {

namespace {

constexpr double kMostBytes = 1LL << 46;
constexpr double kMostUs = 10'000;
constexpr double kMostSide = 1 << 30;
constexpr double kMostSms = 4096;
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

}  // namespace

std::span<const Field> operator_table_fields() { return kFields; }

}  // namespace tandem::ops
