#pragma once
/// Rows to the PEs whose experts their tokens chose, expert by expert, beside the GEMM that waits for them.
///
/// The experts of each PE are dealt with in waves. A wave brings the rows of some experts to their places and adds to
/// the wave's word. A row crosses once for each PE, in the first wave that has an expert of its token there. Later
/// waves read it from its slot. The first waves are short, so that the GEMM starts early.

#include "base/gpu_kernel.h"
#include "collectives/experts/row_chunks.h"
#include "collectives/experts/row_output.h"

namespace tandem::ops {

/// Roles of a block, which move rows side by side: a row needs several latencies.
inline constexpr int kWaveRoles = 8;

/// Chunks of tokens for roles in place of blocks.
struct RowWaves : kernels::RowChunks {
  /// A role among those of all blocks.
  struct Member {
    Size number;
    Size members;
  };

  TANDEM_DEVICE Size rounds_of(const Member& m) const { return ceil_div(chunks, m.members); }
  TANDEM_DEVICE Range chunk_of(const Member& m, Size round, Size tokens) const {
    const Size begin = (round * m.members + m.number) * tokens_of_chunk;
    return {begin, max(begin, min(begin + tokens_of_chunk, tokens))};
  }
  TANDEM_DEVICE Signals word_of(const Member& m, Size round, int from) const {
    return arrived + (from * chunks + round * m.members + m.number);
  }
};

struct DispatchWaves {
  using Packet = void;
  static constexpr bool kEpochFirst = true;
  static constexpr int kWarps = 4;  // of a role
  static constexpr int kThreads = kWaveRoles * kWarps * 32;

  struct Args {
    const std::byte* own = nullptr;  // [token][row_bytes]
    kernels::RowOutput out;
    kernels::Routing routing;
    RowWaves rows;
    int waves = 1;
    int experts_of_wave = 0;  // of each PE in each wave but the last, which has the others
    Signals placed;           // [wave]: each role adds 1
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = a.rows.next_epoch(block, kernels::CallPart::kAll);
    a.rows.announce(block, epoch);
    const Size first = Size{block.index()} * kWaveRoles;
    const Size members = Size{block.count()} * kWaveRoles;
    block.template parallel_for<kWarps>(kWaveRoles, [&](auto& role, int i) {
      for (int wave = 0; wave < a.waves; ++wave) move(role, a, epoch, {first + i, members}, wave);
    });
    a.rows.await_all(block, epoch);
  }

 private:
  /// The experts of a wave, by their numbers on their PE.
  struct Wave {
    int begin;
    int end;
  };
  TANDEM_DEVICE static Wave wave_of(const Args& a, int wave) {
    return {wave * a.experts_of_wave, wave + 1 < a.waves ? (wave + 1) * a.experts_of_wave : a.routing.experts_here};
  }
  /// The choices of experts with such numbers; -1 in place of the others.
  template <class Ids>
  TANDEM_DEVICE static Ids only(const Ids& ids, int here, Wave wave) {
    return ids.map(
        [here, wave](std::int32_t id) { return id >= 0 && id % here >= wave.begin && id % here < wave.end ? id : -1; });
  }

  template <class Role>
  TANDEM_DEVICE static void move(Role& role, const Args& a, Epoch epoch, const RowWaves::Member& m, int wave) {
    const auto value = (epoch - 1) * static_cast<Epoch>(a.waves) + static_cast<Epoch>(wave) + 1;
    const Wave experts = wave_of(a, wave);
    for (Size round = 0; round < a.rows.rounds_of(m); ++round) {
      const Size own = role.load_scalar(a.routing.tokens() + role.pe());
      const Range sent = a.rows.chunk_of(m, round, own);
      for (Size token = sent.begin; token < sent.end; ++token) send(role, a, epoch, token, experts);
      for (const int pe : role.peers_from_self())
        if (!sent.empty()) role.notify(a.rows.word_of(m, round, role.pe()), value, pe);
      for (const int pe : role.peers_from_self()) {
        const Size tokens = role.load_scalar(a.routing.tokens() + pe);
        const Range received = a.rows.chunk_of(m, round, tokens);
        if (received.empty()) continue;
        role.wait(a.rows.word_of(m, round, pe), 1, value);
        for (Size token = received.begin; token < received.end; ++token) receive(role, a, epoch, pe, token, experts);
      }
    }
    role.notify(a.placed + wave, 1, role.pe(), SignalOp::kAdd);
  }

  template <class Role>
  TANDEM_DEVICE static void send(Role& role, const Args& a, Epoch epoch, Size token, Wave wave) {
    const kernels::Routing& r = a.routing;
    const int me = role.pe();
    const auto all = kernels::load_ids(role, r, me, token);
    const auto ids = only(all, r.experts_here, wave);
    const kernels::PeSet wanting = kernels::pes_of(r, ids);
    const kernels::PeSet pes = wanting.without(kernels::pes_of(r, only(all, r.experts_here, {0, wave.begin})));
    if (pes.empty() && !wanting.has(me)) return;
    const auto list = a.out.rows_of(kernels::load_places(role, r, me, token, ids), me, token);
    for (const Range piece : a.rows.pieces_of({0, a.rows.row_bytes})) {
      const auto row = role.template load<std::byte>(a.own + token * a.rows.row_bytes, piece);
      for (const int pe : role.peers_from_self())
        if (pes.has(pe)) a.rows.template put<std::byte>(role, r, epoch, pe, token, piece, row);
      a.out.store(role, list, piece, row);
    }
  }

  template <class Role>
  TANDEM_DEVICE static void receive(Role& role, const Args& a, Epoch epoch, int pe, Size token, Wave wave) {
    const kernels::Routing& r = a.routing;
    const auto ids = only(kernels::load_ids(role, r, pe, token), r.experts_here, wave);
    if (!kernels::pes_of(r, ids).has(role.pe())) return;
    const auto list = a.out.rows_of(kernels::load_places(role, r, pe, token, ids), pe, token);
    for (const Range piece : a.rows.pieces_of({0, a.rows.row_bytes}))
      a.out.store(role, list, piece, a.rows.template get<std::byte, std::byte>(role, r, epoch, pe, token, piece));
  }
};

TANDEM_GPU_KERNEL(DispatchWaves, 1024);

}  // namespace tandem::ops
