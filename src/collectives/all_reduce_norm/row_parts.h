#pragma once
/// Rows that are split over several blocks, which exchange their sums and maxima in packets of their own PE.

#include "collectives/all_reduce_norm/norm_args.h"
#include "collectives/steps/packet_rounds.h"

namespace tandem::kernels {

/// The most bytes of a part: 16 for each thread that has elements, a multiple of kScaleGroup elements.
inline constexpr Size kPartBytes = 2048;

/// The parts of each row, a block each. All but the last have `elements` elements, a multiple of kScaleGroup.
struct RowParts {
  int count = 1;
  Size elements = 0;
};

/// Returns the parts of rows of `hidden` elements of `element_bytes` bytes, of which `blocks` blocks take one at least.
/// Throws Unsupported if a row has more parts than there are blocks.
RowParts row_parts(Size hidden, int blocks, Size element_bytes);

/// Returns the number of parts of a row.
Size count_row_parts(Size hidden, Size element_bytes);

/// Returns whether `blocks` blocks hold a row.
bool can_split_rows(Size hidden, int blocks, Size element_bytes);

/// The packets of the blocks of each row.
struct PartStaging {
  static constexpr int kSlots = 4;
  static constexpr int kValues = 3;  // of a row: two sums and a maximum

  LLPacket* packets = nullptr;  // [slot][row of blocks][value][part][kPartPackets]

  /// Returns the number of packets for `blocks` blocks.
  static Size packets_for(Size blocks) { return kSlots * kValues * kPartPackets * blocks; }
};

/// One block's way to the sums and maxima of a row.
///
/// The packets of a round lie where those of four rounds before were. A block sends the first of them when it has all
/// packets of the round before. Their senders had then read all packets of the rounds before that.
template <class Block>
class JoinedParts {
 public:
  TANDEM_DEVICE JoinedParts(Block& block, const PartStaging& staging, int group, int part, int parts)
      : block_(block), packets_(staging.packets + group * step(parts)), part_(part), parts_(parts) {}

  /// Begins a row: round number `round` of all calls.
  TANDEM_DEVICE void begin(Epoch round, Epoch flag) {
    const int slot = static_cast<int>(round % Epoch{PartStaging::kSlots});
    const int groups = block_.count() / parts_;
    next_ = packets_ + slot * groups * step(parts_);
    flag_ = flag;
  }

  template <class Values>
  TANDEM_DEVICE float sum(Block& block, const Values& values) {
    return block.sum_of_parts(values, take(), part_, parts_, flag_);
  }
  template <class Values>
  TANDEM_DEVICE float greatest(Block& block, const Values& values) {
    return block.greatest_of_parts(values, take(), part_, parts_, flag_);
  }
  TANDEM_DEVICE bool is_first() const { return part_ == 0; }

 private:
  /// The packets of a row.
  TANDEM_DEVICE static int step(int parts) { return PartStaging::kValues * kPartPackets * parts; }
  /// Returns the place of the row's next value.
  TANDEM_DEVICE LLPacket* take() {
    LLPacket* const place = next_;
    next_ += kPartPackets * parts_;
    return place;
  }

  Block& block_;
  LLPacket* packets_;  // of this row of blocks, in the first slot
  int part_;
  int parts_;
  LLPacket* next_ = nullptr;
  Epoch flag_ = 0;
};

}  // namespace tandem::kernels
