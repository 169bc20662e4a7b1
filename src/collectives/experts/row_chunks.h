#pragma once
/// Rows on their way between PEs as plain stores, with a signal behind each chunk of tokens: the link's whole rate, for
/// many tokens. Some blocks send while the others receive, so that rows leave while others are written to their places.

#include "collectives/experts/row_slots.h"

namespace tandem::kernels {

struct RowChunks : RowSlots {
  using Packet = void;
  static constexpr Size kPieceBytes = 4096;                 // what 128 threads hold
  static constexpr Size kQuantisedBytes = kPieceBytes / 2;  // a thread holds 16 bytes of fp8
  static constexpr int kPiecesAtOnce = 2;                   // in flight, of one row; more do not fit the registers
  static constexpr int kRowsAtOnce = 2;                     // likewise, where rows are added
  static constexpr Size kRounds = 8;                        // of a call with the most tokens, if all blocks do the same

  Symm<std::byte> rows;  // [place][stride]
  Symm<float> scales;    // [place][groups]
  Signals arrived;       // [PE][chunk]
  Size stride = 0;
  Size groups = 0;         // scales of a row
  bool quantises = false;  // senders, which are more blocks than receivers then
  Size tokens_of_chunk = 0;
  Size chunks = 0;

  template <class Setup>
  static RowChunks of(Setup& setup, const Routing& routing, Size row_bytes, Size groups, int batches) {
    RowChunks rows;
    rows.prepare(setup, row_bytes, kPieceBytes, 0, batches);
    rows.stride = round_up(row_bytes, 16);
    rows.groups = groups;
    rows.tokens_of_chunk = ceil_div(routing.max_tokens, kRounds * setup.blocks());
    rows.chunks = ceil_div(routing.max_tokens, rows.tokens_of_chunk);
    rows.rows = setup.template symmetric<std::byte>(rows.places(routing) * rows.stride, "rows");
    if (groups > 0) rows.scales = setup.template symmetric<float>(rows.places(routing) * groups, "scales");
    rows.arrived = setup.signals(setup.pes() * rows.chunks, "arrived");
    return rows;
  }

  template <class Block>
  TANDEM_DEVICE RowMember sender(const Block& block, CallPart part) const {
    if (part == CallPart::kReceive) return {};
    const Size senders = part == CallPart::kSend ? Size{block.count()} : senders_of(block);
    return block.index() < senders ? RowMember{block.index(), senders} : RowMember{};
  }
  template <class Block>
  TANDEM_DEVICE RowMember receiver(const Block& block, CallPart part) const {
    if (part == CallPart::kSend) return {};
    if (part == CallPart::kReceive || block.count() == 1) return {block.index(), block.count()};
    const Size senders = senders_of(block);
    return block.index() < senders ? RowMember{} : RowMember{block.index() - senders, block.count() - senders};
  }
  TANDEM_DEVICE Size rounds(const RowMember& m) const { return m.count == 0 ? 0 : ceil_div(chunks, m.count); }
  /// Calls f(token, bytes of its row) for the whole rows of this block's chunk of so many tokens.
  template <class F>
  TANDEM_DEVICE void for_own(const RowMember& m, Size round, Size tokens, const F& f) const {
    const Range own = chunk(m, round, tokens);
    for (Size token = own.begin; token < own.end; ++token) f(token, Range{0, row_bytes});
  }

  template <class T, class Block, class Values>
  TANDEM_DEVICE void put(Block& block, const Routing& r, Epoch epoch, int to, Size token, Range bytes,
                         const Values& values) const {
    std::byte* const row = rows.on(to) + place(r, epoch, block.pe(), to, token) * stride;
    block.store(reinterpret_cast<T*>(row), elements<T>(bytes), values);
  }
  template <class Block, class Values>
  TANDEM_DEVICE void put_scales(Block& block, const Routing& r, Epoch epoch, int to, Size token, Range,
                                Range its_groups, const Values& values) const {
    block.store(scales.on(to) + place(r, epoch, block.pe(), to, token) * groups, its_groups, values);
  }
  template <class A, class T, class Block>
  TANDEM_DEVICE auto get(Block& block, const Routing& r, Epoch epoch, int from, Size token, Range bytes) const {
    const std::byte* const row = rows.local() + place(r, epoch, from, block.pe(), token) * stride;
    return block.template load<A>(reinterpret_cast<const T*>(row), elements<T>(bytes));
  }
  template <class Block>
  TANDEM_DEVICE auto get_scales(Block& block, const Routing& r, Epoch epoch, int from, Size token, Range,
                                Range its_groups) const {
    const float* const row = scales.local() + place(r, epoch, from, block.pe(), token) * groups;
    return block.template load<float>(row, its_groups);
  }

  /// Signals to a PE that this block's chunk is there, if it has any of so many tokens.
  template <class Block>
  TANDEM_DEVICE void notify(Block& block, const RowMember& m, Size round, Size tokens, Epoch epoch, int to) const {
    if (!chunk(m, round, tokens).empty()) block.notify(word(m, round, block.pe()), epoch, to);
  }
  template <class Block>
  TANDEM_DEVICE void await(Block& block, const RowMember& m, Size round, Size tokens, Epoch epoch, int from) const {
    if (!chunk(m, round, tokens).empty()) block.wait(word(m, round, from), 1, epoch);
  }

 private:
  /// The blocks that send in a whole call. A single block sends everything before it receives.
  template <class Block>
  TANDEM_DEVICE Size senders_of(const Block& block) const {
    return max(1, quantises ? block.count() * 2 / 3 : block.count() / 2);
  }
  /// The division is unsigned, which takes a shift alone.
  template <class T>
  TANDEM_DEVICE static Size whole(Size bytes) {
    return static_cast<Size>(static_cast<std::uint64_t>(bytes) / sizeof(T));
  }
  template <class T>
  TANDEM_DEVICE static Range elements(Range bytes) {
    return {whole<T>(bytes.begin), whole<T>(bytes.end)};
  }
  TANDEM_DEVICE Range chunk(const RowMember& m, Size round, Size tokens) const {
    const Size begin = (round * m.count + m.index) * tokens_of_chunk;
    return {begin, max(begin, min(begin + tokens_of_chunk, tokens))};
  }
  TANDEM_DEVICE Signals word(const RowMember& m, Size round, int from) const {
    return arrived + (from * chunks + round * m.count + m.index);
  }
};

}  // namespace tandem::kernels
