#pragma once
/// The engine below a Block on CPUs: the block's operations on untyped bytes. The simulator has one in virtual time,
/// and the host device has one in real time.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tandem/impl/cpu/buffer.h"
#include "tandem/impl/cpu/fragment.h"
#include "tandem/impl/site.h"
#include "tandem/signal.h"

namespace tandem::cpu {

/// The end of a put or get: when its source is reusable, or at once (`_nbi`: completed by quiet).
enum class Completion { kBlocking, kNonBlocking };

/// A signal that travels with data. `word` lies on the destination PE.
struct SignalUpdate {
  Signal* word = nullptr;
  Epoch value = 0;
  SignalOp op = SignalOp::kSet;
  bool after_reads = false;  ///< the sender's reads are over when it is sent, its stores need not be
};

enum class AtomicOp { kAdd, kExchange, kCompareSwap };
enum class MultimemOp { kStore, kLoad, kReduce };

/// The place of the flag in a packet.
struct PacketForm {
  Size bytes = 0;
  Size flag_offset = 0;
  int flag_bytes = 0;

  template <class P>
  static constexpr PacketForm of() {
    return {Size{sizeof(P)}, Size{offsetof(P, flag)}, static_cast<int>(sizeof(P::flag))};
  }
};

class BlockCore {
 public:
  virtual ~BlockCore() = default;
  BlockCore(const BlockCore&) = delete;
  BlockCore& operator=(const BlockCore&) = delete;

  TANDEM_DEVICE int pe() const { return team_.me; }
  TANDEM_DEVICE int num_pes() const { return team_.size; }
  TANDEM_DEVICE int index() const { return index_; }
  TANDEM_DEVICE int count() const { return count_; }
  const Team& team() const { return team_; }
  /// Returns whether stores write memory at once, without a payload that the engine delivers later.
  bool stores_at_once() const { return stores_at_once_; }
  /// Returns whether team member `pe` can be reached by loads and stores.
  virtual bool reachable(int pe) const = 0;
  virtual bool has_multicast() const = 0;
  virtual bool phantom() const = 0;
  /// Returns whether the memory has contents (always, but for data in phantom mode).
  virtual bool backed(const void* address) const = 0;
  /// Returns the bytes that one step of a tile loop covers.
  virtual Size tile_bytes() const = 0;

  /// Returns the layout of data that this block or role loads from elements of so many bytes.
  Layout layout(Size element_bytes) const { return {static_cast<int>(element_bytes), holder_}; }
  /// Refuses more elements than a step of a tile loop has.
  void require_tile(Size elements, Size element_bytes, const char* operation, Site site) const;
  /// Refuses a fragment that another block or role has loaded, or one of other than `elements` elements. Refuses one
  /// that was loaded from elements of other than `element_bytes` bytes, too (0: any).
  void require_fragment(Size size, const Layout& its, Size elements, Size element_bytes, const char* operation,
                        Site site) const;
  /// Refuses an array that does not have a word for each block and PE.
  virtual void require_slots(Signals words, const char* operation, Site site) const = 0;

  /// Precedes the block's read of the bytes. `is_moved`: the data goes elsewhere as it is, and nothing depends on its
  /// value.
  virtual void read(const void* from, Size bytes, Site site, bool is_moved = false) = 0;
  /// Reads one element, which a loop may poll, to `to`. Leaves `to` as it is where memory has no contents.
  virtual void read_scalar(void* to, const void* from, Size bytes, Site site) = 0;
  /// Precedes the block's read of `bytes` at the same offset of every PE of the team, all in flight at once.
  virtual void read_all(Symm<const std::byte> from, Size bytes, Site site) = 0;
  /// Writes the payload (empty in phantom mode) to local or reachable memory.
  virtual void write(void* to, Buffer payload, Size bytes, Site site) = 0;
  /// Writes one element, which a loop may poll.
  virtual void write_scalar(void* to, const void* value, Size bytes, Site site) = 0;
  virtual void copy(void* to, const void* from, Size bytes, Site site) = 0;

  virtual void put(void* to, const void* from, Size bytes, Completion completion, const SignalUpdate* signal,
                   Site site) = 0;
  virtual void get(void* to, const void* from, Size bytes, Completion completion, Site site) = 0;
  virtual void fence(Site site) = 0;
  virtual void quiet(Site site) = 0;

  /// Changes a word here or on a peer; a release orders everything before it.
  virtual void signal(const SignalUpdate& update, Order order, Site site) = 0;
  /// Waits until all `n` words, one every `stride` words, compare true. Acquire at system scope unless relaxed.
  virtual void wait(const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order, Site site) = 0;
  virtual bool test(const Signal* word, Cmp cmp, Epoch value, Site site) = 0;
  virtual Epoch next_epoch(Epochs epochs, Epoch count, Site site) = 0;

  /// Runs an atomic operation on a word of 4 or 8 bytes, here or at a reachable peer. Returns the old value.
  virtual std::uint64_t atomic(void* word, int bytes, AtomicOp op, std::uint64_t operand, std::uint64_t expected,
                               Scope scope, Order order, Site site) = 0;

  /// Refuses packets that `write_packets` would, before there is memory for them.
  virtual void check_packets(const void* to, Size bytes, Site site) const = 0;
  /// Writes packets (already with flags) to a local or reachable address: each flag after its data.
  virtual void write_packets(void* to, Buffer packets, const PacketForm& form, Site site) = 0;
  /// Waits until every packet's flag is `flag`. Their data may be read then.
  virtual void wait_packets(const void* packets, Size count, const PacketForm& form, std::uint64_t flag, Site site) = 0;

  /// Precedes a store of the same bytes to every PE through the switch (or a reduction into them), or a reducing load.
  /// Throws Unsupported if there is no multicast.
  virtual void multimem(Symm<std::byte> at, Size bytes, MultimemOp op, Site site) = 0;
  /// Delivers a multimem store's payload to one PE.
  virtual void deliver_multimem(void* to, Buffer payload, Site site) = 0;

  virtual void sync(Site site) = 0;
  /// Runs n roles side by side, each on its own share of the block's warps, and joins.
  virtual void run_roles(int n, const int* widths, const std::function<void(int, BlockCore&)>& body, Site site) = 0;

 protected:
  /// `holder` marks the fragments that this block or role loads. It differs for each that runs at the same time.
  BlockCore(const Team& team, int index, int count, std::uint32_t holder, bool stores_at_once)
      : team_(team), index_(index), count_(count), holder_(holder), stores_at_once_(stores_at_once) {}

  /// Refuses roles that a block of `warps` warps cannot have.
  static void require_roles(int n, const int* widths, int warps, bool is_role);

 private:
  const Team team_;
  const int index_;
  const int count_;
  const std::uint32_t holder_;
  const bool stores_at_once_;
};

}  // namespace tandem::cpu
