#pragma once
/// Streams of chunks through slots at their readers, for calls on memory that peers do not reach.
///
/// A sender loads from its own buffer and stores to a slot of the reader, which copies or reduces it. A block has lanes
/// that take turns: lane l moves the chunks l, l + kLanes, ... One stores while others wait for their releases. A role
/// serves one lane or several.
///
/// Plans may share the memory of the slots. So a PE writes there only after its reader's `ready` of this call, which
/// the reader writes after all earlier work of its stream. Chunk i of a call has slot i / kLanes % kSlots of its lane.
/// It is written once the reader has released the chunk that was there. A reader ends only after all its chunks have
/// come. Chunks are counted over all calls, alike on all PEs, and words hold these numbers, so none is ever cleared.

#include "tandem/block.h"

namespace tandem::kernels {

struct StreamSlots {
  static constexpr int kLanes = 4;   // of a block
  static constexpr Size kSlots = 2;  // of a lane, for each sender

  Symm<std::byte> memory;  // [lane][block][sender][kSlots][bytes], without the reader itself
  Signals ready;           // [block][PE]: that PE has begun the call that starts with this chunk
  Signals arrived;         // [lane][block][sender]: the last chunk that is here
  Signals released;        // [lane][block][reader]: the last chunk that it has read
  Epochs chunks;           // [block]: over all calls
  Size bytes = 0;          // of a slot

  /// At most this many blocks: on two H100 they fill the links.
  static int suitable_blocks(int blocks) { return blocks < 32 ? blocks : 32; }

  /// `most_bytes`: from one PE to another in the largest call. Slots lie in `shared` where that has room for them.
  template <class Setup>
  static StreamSlots of(Setup& setup, Size most_bytes, Symm<std::byte> shared, const char* what = "slots") {
    constexpr Size kAll = Size{16} << 20, kMost = Size{64} << 10, kUnit = 128;
    const Size slots = kLanes * kSlots * setup.blocks() * max(1, setup.pes() - 1);
    const Size needed = min(kMost, max(kUnit, round_up(split(most_bytes, setup.blocks(), 128).step(), kUnit)));
    const auto fit = [&](Size all) { return min(needed, all / slots / kUnit * kUnit); };
    StreamSlots made;
    made.bytes = fit(setup.staging_bytes());
    made.memory = shared;
    if (made.bytes == 0) {
      made.bytes = max(kUnit, fit(kAll));
      made.memory = setup.template symmetric<std::byte>(setup.pes() > 1 ? slots * made.bytes : 0, what);
    }
    made.ready = setup.slots("ready");
    made.arrived = setup.signals(kLanes * setup.blocks() * setup.pes(), "arrived");
    made.released = setup.signals(kLanes * setup.blocks() * setup.pes(), "released");
    made.chunks = setup.epochs();
    return made;
  }
};

/// The chunks of one call of a block, each of elements of T.
template <class T>
class StreamChunks {
 public:
  /// `count`: elements of the longest flow from one PE to another, which blocks divide.
  template <class Block>
  TANDEM_DEVICE StreamChunks(Block& block, const StreamSlots& slots, Size count)
      : slots_(slots),
        part_(split(count, block.count(), 16)[block.index()]),
        step_(step_of(slots.bytes, part_.size())),
        count_(ceil_div(part_.size(), step_)),
        before_(block.next_epoch(slots.chunks, static_cast<Epoch>(count_)) - 1) {
    if (count_ > 0) block.notify_all(slots.ready, number(0));
  }
  /// The same chunks through other slots.
  TANDEM_DEVICE StreamChunks(const StreamChunks& other, const StreamSlots& slots)
      : slots_(slots), part_(other.part_), step_(other.step_), count_(other.count_), before_(other.before_) {}

  TANDEM_DEVICE Size count() const { return count_; }
  TANDEM_DEVICE Range chunk(Size i) const {
    const Size begin = part_.begin + i * step_;
    return {begin, min(begin + step_, part_.end)};
  }
  /// Returns the slot of chunk i from `sender` at `reader`.
  template <class Role>
  TANDEM_DEVICE Symm<T> slot(const Role& role, Size i, int sender, int reader) const {
    const Size lane = i % kLanes * role.count() + role.index();
    const Size flow = lane * (role.num_pes() - 1) + (sender < reader ? sender : sender - 1);
    const Size at = flow * StreamSlots::kSlots + i / kLanes % StreamSlots::kSlots;
    return (slots_.memory + at * slots_.bytes).template as<T>();
  }

  /// Waits until `reader` has begun this call. It matters for the first chunk of each lane.
  template <class Role>
  TANDEM_DEVICE void await_ready(Role& role, Size i, int reader) const {
    if (i < kLanes) role.wait(role.slots(slots_.ready) + reader, 1, number(0));
  }
  /// Waits until `reader` has read the chunk that was in the slot of chunk i.
  template <class Role>
  TANDEM_DEVICE void await_free(Role& role, Size i, int reader) const {
    constexpr Size kAhead = kLanes * StreamSlots::kSlots;
    if (i >= kAhead) role.wait(words(role, slots_.released, i) + reader, 1, number(i - kAhead));
  }
  /// Announces to all peers, or to one, that chunk i is in its slot.
  template <class Role>
  TANDEM_DEVICE void sent(Role& role, Size i) const {
    role.notify_all(of_lane(role, slots_.arrived, i), number(i));
  }
  template <class Role>
  TANDEM_DEVICE void sent(Role& role, Size i, int reader) const {
    role.notify(words(role, slots_.arrived, i) + role.pe(), number(i), reader);
  }
  template <class Role>
  TANDEM_DEVICE void await(Role& role, Size i, int sender) const {
    role.wait(words(role, slots_.arrived, i) + sender, 1, number(i));
  }
  /// Lets `sender` write the slot of chunk i again.
  template <class Role>
  TANDEM_DEVICE void release(Role& role, Size i, int sender) const {
    role.signal_after_reads(words(role, slots_.released, i) + role.pe(), number(i), sender);
  }

 private:
  static constexpr int kLanes = StreamSlots::kLanes;

  /// Small calls have short chunks, so that the last one's copy does not take long.
  TANDEM_DEVICE static Size step_of(Size slot_bytes, Size part) {
    constexpr Size kAbout = 8, kLeast = (Size{4} << 10) / Size{sizeof(T)};
    return min(slot_bytes / Size{sizeof(T)}, max(kLeast, round_up(ceil_div(part, kAbout), 128)));
  }
  TANDEM_DEVICE Epoch number(Size i) const { return before_ + static_cast<Epoch>(i + 1); }
  template <class Role>
  TANDEM_DEVICE static Signals of_lane(const Role& role, Signals all, Size i) {
    return all + i % kLanes * role.count() * role.num_pes();
  }
  template <class Role>
  TANDEM_DEVICE static Signals words(const Role& role, Signals all, Size i) {
    return role.slots(of_lane(role, all, i));
  }

  const StreamSlots& slots_;
  Range part_;
  Size step_;
  Size count_;
  Epoch before_;
};

}  // namespace tandem::kernels
