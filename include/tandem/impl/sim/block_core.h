#pragma once
/// What the simulator's Block does to untyped bytes: cost, transport, delivery, blocking. Defined in src/sim.

#include <cstdint>
#include <functional>

#include "tandem/impl/sim/buffer.h"
#include "tandem/impl/sim/fragment.h"
#include "tandem/impl/site.h"
#include "tandem/signal.h"

namespace tandem::sim {

class Role;

/// How a put or get ends: when its source is reusable, or at once (`_nbi`: completed by quiet).
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

class BlockCore {
 public:
  explicit BlockCore(Role& role) : role_(&role) {}

  int pe() const;
  int num_pes() const;
  int index() const;
  int count() const;
  const Team& team() const;
  /// Whether team member `pe` can be reached by loads and stores.
  bool reachable(int pe) const;
  bool has_multicast() const;
  bool phantom() const;

  /// Whether the memory has contents (always, but for data in phantom mode).
  bool backed(const void* address) const;
  /// Bytes that one step of a tile loop covers.
  Size tile_bytes() const;

  /// Returns the layout of data that this block or role loads from elements of so many bytes.
  Layout layout(Size element_bytes) const;
  /// Refuses more elements than a step of a tile loop has.
  void require_tile(Size elements, Size element_bytes, const char* operation, Site site) const;
  /// Refuses a fragment that another block or role has loaded, one of other than `elements` elements, and one that was
  /// loaded from elements of other than `element_bytes` bytes (0: any).
  void require_fragment(Size size, const Layout& its, Size elements, Size element_bytes, const char* operation,
                        Site site) const;

  /// `is_moved`: the data goes elsewhere as it is, and nothing depends on its value.
  void read(const void* from, Size bytes, Site site, bool is_moved = false);
  /// Reads one element, which a loop may poll: another look takes time.
  void read_scalar(const void* from, Size bytes, Site site);
  /// Reads `bytes` at the same offset of every PE of the team, all in flight at once.
  void read_all(Symm<const std::byte> from, Size bytes, Site site);
  /// Writes the payload (empty in phantom mode) to local or reachable memory.
  void write(void* to, Buffer payload, Size bytes, Site site);
  void copy(void* to, const void* from, Size bytes, Site site);

  void put(void* to, const void* from, Size bytes, Completion completion, const SignalUpdate* signal, Site site);
  void get(void* to, const void* from, Size bytes, Completion completion, Site site);
  void fence(Site site);
  void quiet(Site site);

  /// Changes a word here or on a peer; a release orders everything before it.
  void signal(const SignalUpdate& update, Order order, Site site);
  /// Waits until all `n` words, one every `stride` words, compare true. Acquire at system scope unless relaxed.
  void wait(const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order, Site site);
  bool test(const Signal* word, Cmp cmp, Epoch value, Site site);
  /// Refuses an array that has not a word for each block and PE.
  void require_slots(Signals words, const char* operation, Site site) const;
  Epoch next_epoch(Epochs epochs, Epoch count, Site site);

  /// Atomic on a word of 4 or 8 bytes, here or at a reachable peer; returns the old value.
  std::uint64_t atomic(void* word, int bytes, AtomicOp op, std::uint64_t operand, std::uint64_t expected, Scope scope,
                       Order order, Site site);

  /// Refuses packets that `write_packets` would, before there is memory for them. Returns whose memory it is.
  int check_packets(const void* to, Size bytes, Site site) const;
  /// Writes packets (already with flags) to a local or reachable address.
  void write_packets(void* to, Buffer packets, Site site);
  /// Waits until every packet's flag is `flag`. `packet_bytes` and `flag_offset` tell LL from LL128.
  void wait_packets(const void* packets, Size count, Size packet_bytes, Size flag_offset, int flag_bytes,
                    std::uint64_t flag, Site site);

  /// Charges a store of the same bytes to every PE through the switch (or a reduction into them), or a reducing load.
  void multimem(Symm<std::byte> at, Size bytes, MultimemOp op, Site site);
  /// Delivers a multimem store's payload to one PE at the time charged last.
  void deliver_multimem(void* to, Buffer payload, Site site);

  void sync(Site site);

 protected:
  /// Runs n roles side by side, each on its own share of the block's warps, and joins.
  void run_roles(int n, const int* widths, const std::function<void(int, BlockCore)>& body, Site site);

 private:
  Role* role_;
};

}  // namespace tandem::sim
