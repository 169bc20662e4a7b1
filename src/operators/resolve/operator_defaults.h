#pragma once
/// The rules and the measured choices by which resolve() (resolve.h) fills in the options that are left open.

#include "operators/resolve/table/operator_table.h"
#include "tandem/machine.h"
#include "tandem/operators.h"

namespace tandem::ops {

/// Columns of the tiles in fp8 that GPUs have kernels for. Wide ones are for 16-bit results.
inline constexpr int kNarrowFp8TileN = 128, kWideFp8TileN = 256;

/// The world for which options are chosen.
struct Place {
  const Team team;
  const Machine& model;  ///< planning_model of the world's machine
  const OperatorTable& table;
  const int sm_count;  ///< of the world's machine
  const bool on_gpus;
  const bool adds_up_few_rows;  ///< GEMMs of few rows can add over PEs (Stream::adds_up)
};

/// Returns the model by which choices are made. It is the world's machine, or the builtin model of its GPUs if the
/// backend knows only their limits.
Machine planning_model(const Machine& machine);

/// Returns the tile columns of the GPUs' GEMM (bf16, B as NxK) with which `sms` SMs compute m x n x k the fastest. Wide
/// tiles need less traffic, but their last wave should not leave many SMs idle.
int suitable_tile_n(const OperatorTable& table, Size m, Size n, Size k, int sms);

/// Does the same for AllGather + GEMM of `pes` PEs, of the local n. A GEMM that waits for the link gets narrow tiles.
int suitable_gather_tile_n(const OperatorTable& table, Size m, Size n, Size k, int pes, int sms);

/// Does the same for a chain of `pes` PEs, of the global m and n and the local k. A PE adds to a tile the sum that its
/// neighbour computed one shard before. Between more than two PEs, both compute tiles of a shard below a wave at the
/// same time, and one waits for the other. Narrower tiles are then faster: 1.23 of the GEMM alone with 256 columns,
/// 1.18 with 128 (1024x8192x28672 of four PEs).
int suitable_ring_tile_n(const OperatorTable& table, Size m, Size n, Size k, int pes, int sms);

/// The tile and the panel group that suit the rest of the options on GPUs.
struct TileChoice {
  int tile_n = 0;
  int panel_group = 0;
};
TileChoice measured_tile(const Place& place, Operator op, const OperatorOptions& options);

/// Returns the rows up to which GEMMs in fp8 with 16-bit results take narrow tiles on GPUs. Wide tiles read fewer bytes
/// from the L2 cache, but should not leave half of the SMs idle.
Size narrow_fp8_rows(const Place& place, Operator op, const OperatorOptions& options);

/// A chain of two PEs has one link. Longer chains keep sums on their way longer than an owner needs to add them.
Reduction suitable_reduction(const Place& place, Operator op);
int suitable_splits(const Place& place, Operator op, const OperatorOptions& options);
CopyBy suitable_mover(const Place& place, Operator op, const OperatorOptions& options);
/// `options` are complete except for this number and the order.
int suitable_communication_sms(const Place& place, Operator op, const OperatorOptions& options);

/// Returns the rows up to which the sequential form is faster on a node, since overlap pays only if shards fill tiles.
/// On GPUs the measured times of GEMMs and collectives decide.
Size sequential_rows(const Place& place, Operator op, const OperatorOptions& options);
/// Chooses the sequential form's transport on GPUs if the caller left it open. SMs start sooner than copies.
void choose_sequential_transport(const Place& place, Operator op, OperatorOptions& options);

/// The numbers of rows up to which gemm_all_reduce takes each strategy, 0 for none. `options` are complete.
struct AllReduceRows {
  // The overlapped form on one node.
  Size few = 0;       ///< the GEMM's blocks exchange and add what they computed
  Size packets = 0;   ///< a whole GEMM, then an all-reduce with packets
  Size one_shot = 0;  ///< every PE receives the tiles of all PEs and adds them
  // The sequential form of two PEs: plans of so many rows, above the first number, take the collective's one shot.
  Size collective_above = 0, collective_one_shot = 0;
  int collective_blocks = 0;
};
AllReduceRows all_reduce_rows(const Place& place, const OperatorOptions& options);

}  // namespace tandem::ops
