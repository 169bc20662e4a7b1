#pragma once
/// What an operator takes where its options leave a choice open and the tuner's cache has no entry: on GPUs what was
/// measured, else rules from the simulator's predictions.

#include "tandem/machine.h"
#include "tandem/operators.h"

namespace tandem::ops {

/// GPUs have no kernel of fp8 with wider tiles.
inline constexpr int kMostFp8TileN = 128;

/// The model by which choices are made: the world's machine, or, where a backend knows its GPUs' limits alone, the
/// builtin model of such GPUs.
Machine planning_model(const Machine& machine);

/// Options with the choices of the table of what was measured on GPUs (selection.cpp) where the caller left them open.
OperatorOptions with_measured(const World& world, Operator op, const OperatorOptions& given);

/// Columns of a tile of the GPUs' GEMM (bf16, B as NxK) with which `sms` SMs compute m x n x k the soonest: wide tiles
/// need less traffic, but the last wave of them should not leave many SMs idle.
int suitable_tile_n(Size m, Size n, Size k, int sms);

/// The same for AllGather + GEMM of `pes` PEs, of the local n: narrow tiles where a GEMM waits for the link.
int suitable_gather_tile_n(Size m, Size n, Size k, int pes, int sms);

/// The same for a chain of `pes` PEs, of the global m and n and the local k. What a PE adds to a tile, its neighbour
/// has computed one shard before: where a shard is less than a wave of tiles, of more than two PEs both compute it at
/// the same time, and the one waits for the other. Then narrower tiles are quicker (1024x8192x28672 of four PEs: 1.23
/// of the GEMM alone with 256 columns, 1.18 with 128).
int suitable_chain_tile_n(Size m, Size n, Size k, int pes, int sms);

/// Options with every choice made but `order`, and `form` only where no run may want another one.
OperatorOptions complete(Operator op, const OperatorOptions& given, const Machine& model, const Team& team);

/// Rows up to which the sequential form is the faster one on a node: shards have to fill tiles for overlap to pay.
/// `measured`: on GPUs, by what their GEMMs and collectives were seen to take.
Size sequential_rows(Operator op, const OperatorOptions& options, const Machine& model, const Team& team,
                     bool measured);
/// The transport of the sequential form where the caller left it open, on GPUs: SMs start sooner than copies.
void choose_sequential_transport(Operator op, OperatorOptions& options, int sm_count);

}  // namespace tandem::ops
