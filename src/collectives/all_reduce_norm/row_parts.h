#pragma once
/// Rows that are split over several blocks, which exchange their sums and maxima in packets of their own PE.

#include "collectives/all_reduce_norm/norm_args.h"
#include "collectives/steps/packet_rounds.h"

namespace tandem::kernels {

/// The parts of each row, a block each. All but the last have `elements` elements, a multiple of kScaleGroup.
struct RowParts {
  int count = 1;
  Size elements = 0;
};

/// Returns the parts for calls of up to `rows` rows on `blocks` blocks. A part is at most `fragment` elements, of
/// `element_bytes` bytes. Throws Unsupported if a row needs more parts than there are blocks.
RowParts row_parts(Size hidden, Size rows, int blocks, Size fragment, Size element_bytes);

/// Returns the blocks that one row can use.
Size most_row_parts(Size hidden, Size element_bytes);

/// The bytes of a row that a block with packets P holds in registers, 16 for each thread that holds elements.
template <class P>
constexpr Size kMostPartBytes = 16 * (std::is_same_v<P, LL128Line> ? 448 : 512);

/// Returns whether `blocks` blocks hold a row with lines of packets.
bool can_split_rows(Size hidden, int blocks, Size element_bytes);

/// The packets of the blocks of each row.
template <class P>
struct PartStaging {
  static constexpr int kPackets = sizeof(P) < 16 ? 16 / sizeof(P) : 1;  // of a value, since packets begin at 16 bytes
  static constexpr int kFloats = kPackets * static_cast<int>(sizeof(P::data) / sizeof(float));
  static constexpr int kValues = 3;  // of a row: two sums and a maximum

  Symm<P> packets;               // [slot][row of blocks][value][part]
  const float* first = nullptr;  // [kFloats]: 1, 0, 0, ...
};

/// One block's way to the sums and maxima of a row.
///
/// The packets of a round lie where those of four rounds before were. A block sends the first of them when it has all
/// packets of the round before. Their senders had then read all packets of the rounds before that.
template <class P, class Block>
class JoinedParts {
  using Staging = PartStaging<P>;

 public:
  TANDEM_DEVICE JoinedParts(Block& block, const Staging& staging, int parts)
      : block_(block),
        packets_(staging.packets),
        parts_(parts),
        part_(block.index() % parts),
        first_(block.template load<float>(staging.first, {0, Staging::kFloats})) {}

  /// Begins a row: round number `round` of all calls.
  TANDEM_DEVICE void begin(Epoch round, Epoch flag) {
    const int rows = block_.count() / parts_;
    const int slot = static_cast<int>(round % Epoch{PacketStaging<P>::kSlots});
    next_ = (slot * rows + block_.index() / parts_) * Staging::kValues * step();
    flag_ = flag;
  }

  TANDEM_DEVICE float sum(float own) { return block_.sum(all(own)); }
  TANDEM_DEVICE float greatest(float own) { return block_.greatest(all(own)); }
  TANDEM_DEVICE bool is_first() const { return part_ == 0; }

 private:
  TANDEM_DEVICE int step() const { return parts_ * Staging::kPackets; }
  /// Returns the values of all parts, in order. Zeros fill the packets.
  TANDEM_DEVICE auto all(float own) {
    const Symm<P> values = packets_ + next_;
    next_ += step();
    block_.template ll_put_fragment<float>(values + part_ * Staging::kPackets,
                                           first_.map([own](float x) { return x != 0 ? own : 0.0F; }), flag_,
                                           block_.pe());
    return block_.template ll_get<float, float>(static_cast<const P*>(values.local()), Size{parts_} * Staging::kFloats,
                                                flag_);
  }

  Block& block_;
  Symm<P> packets_;
  int parts_;
  int part_;
  typename Block::template FragmentOf<float> first_;
  int next_ = 0;
  Epoch flag_ = 0;
};

}  // namespace tandem::kernels
