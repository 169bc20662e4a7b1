#pragma once
/// The order in which the chunks of shards travel within a node, and the chunks' places in bytes.
///
/// A PE moves the shards of its rail. It starts with its own shard and continues with those of the PEs with its number
/// in the previous nodes, one *hop* each. On one node that is its own shard only.

#include "tandem/advanced/gemm.h"
#include "tandem/team.h"

namespace tandem::ops {

/// The transfer of one chunk between this PE and a peer of its node. PE numbers are the world's.
struct ChunkStep {
  int peer = 0;
  int part = 0;
  /// The peer's index among the node's other PEs, in the order of the steps: 0 to node_size - 2.
  int peer_step = 0;
};

/// The order in which a PE transfers (peer of the node, part of a shard).
struct ChunkOrder {
  Team team;
  int splits = 1;
  /// +1: the next peer first; -1: the previous one first.
  int direction = 1;
  /// Part 0 of all peers, then part 1 of all, ...; else all parts of a peer together.
  bool part_major = false;

  TANDEM_DEVICE int peers() const { return team.node_size - 1; }
  TANDEM_DEVICE int steps() const { return peers() * splits; }
  TANDEM_DEVICE int hops() const { return team.nodes(); }
  TANDEM_DEVICE int first_of_node() const { return team.me - team.me % team.node_size; }

  /// Data from other nodes is forwarded as it arrives, always part by part.
  TANDEM_DEVICE ChunkStep at(int hop, int step) const {
    const bool by_part = part_major || hop > 0;
    const int peer_step = by_part ? step % peers() : step / splits;
    const int local = team.me - first_of_node() + direction * (1 + peer_step);
    const int peer = (local + team.node_size) % team.node_size;
    return {first_of_node() + peer, by_part ? step / peers() : step % splits, peer_step};
  }

  /// Returns the owner of the shard that PE `holder` of this node holds after `hop` hops, which comes from the hop-th
  /// previous node.
  TANDEM_DEVICE int owner(int holder, int hop) const { return (holder - hop * team.node_size + team.size) % team.size; }
};

/// Returns the bytes of rows with `row_bytes` bytes each.
TANDEM_DEVICE constexpr Range bytes_of(Range rows, Size row_bytes) {
  return {rows.begin * row_bytes, rows.end * row_bytes};
}

}  // namespace tandem::ops
