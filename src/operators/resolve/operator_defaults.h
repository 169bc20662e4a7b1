#pragma once
/// The rules and the measured choices by which resolve() (resolve.h) fills in the options that are left open.

#include "operators/resolve/operator_table.h"
#include "tandem/machine.h"
#include "tandem/operators.h"

namespace tandem::ops {

/// GPUs have no kernel of fp8 with wider tiles.
inline constexpr int kMostFp8TileN = 128;

/// The world for which options are chosen.
struct Place {
  const Team team;
  const Machine& model;  ///< planning_model of the world's machine
  const OperatorTable& table;
  const int sm_count;  ///< of the world's machine
  const bool on_gpus;
};

/// The model by which choices are made: the world's machine, or, where a backend knows its GPUs' limits alone, the
/// builtin model of such GPUs.
Machine planning_model(const Machine& machine);

/// Columns of a tile of the GPUs' GEMM (bf16, B as NxK) with which `sms` SMs compute m x n x k the soonest: wide tiles
/// need less traffic, but the last wave of them should not leave many SMs idle.
int suitable_tile_n(const OperatorTable& table, Size m, Size n, Size k, int sms);

/// The same for AllGather + GEMM of `pes` PEs, of the local n: narrow tiles where a GEMM waits for the link.
int suitable_gather_tile_n(const OperatorTable& table, Size m, Size n, Size k, int pes, int sms);

/// The same for a chain of `pes` PEs, of the global m and n and the local k. What a PE adds to a tile, its neighbour
/// has computed one shard before: where a shard is less than a wave of tiles, of more than two PEs both compute it at
/// the same time, and the one waits for the other. Then narrower tiles are quicker (1024x8192x28672 of four PEs: 1.23
/// of the GEMM alone with 256 columns, 1.18 with 128).
int suitable_ring_tile_n(const OperatorTable& table, Size m, Size n, Size k, int pes, int sms);

/// The tile and the panel group that suit the rest of the options on GPUs.
struct TileChoice {
  int tile_n = 0;
  int panel_group = 0;
};
TileChoice measured_tile(const Place& place, Operator op, const OperatorOptions& options);

/// The chain of two has one link; longer ones keep the sums on their way for longer than the owner needs to add them.
Reduction suitable_reduction(const Place& place, Operator op);
int suitable_splits(const Place& place, Operator op, const OperatorOptions& options);
CopyBy suitable_mover(const Place& place, Operator op, const OperatorOptions& options);
/// `options` have all else but the order.
int suitable_communication_sms(const Place& place, Operator op, const OperatorOptions& options);

/// Rows up to which the sequential form is the faster one on a node: shards have to fill tiles for overlap to pay. On
/// GPUs by what their GEMMs and collectives were seen to take.
Size sequential_rows(const Place& place, Operator op, const OperatorOptions& options);
/// The transport of the sequential form where the caller left it open, on GPUs: SMs start sooner than copies.
void choose_sequential_transport(const Place& place, Operator op, OperatorOptions& options);

/// gemm_all_reduce: the numbers of rows up to which it runs in ways of their own, 0 for none. `options` are complete.
struct AllReduceRows {
  // The overlapped form on one node.
  Size few = 0;       ///< the GEMM's blocks exchange and add what they computed (GPUs)
  Size packets = 0;   ///< a whole GEMM, then an all-reduce with packets
  Size one_shot = 0;  ///< every PE receives the tiles of all PEs and adds them
  // The sequential form of two PEs: plans of so many rows, above the first number, take the collective's one shot.
  Size collective_above = 0, collective_one_shot = 0;
  int collective_blocks = 0;
};
AllReduceRows all_reduce_rows(const Place& place, const OperatorOptions& options);

}  // namespace tandem::ops
