#pragma once
/// A block's operations in real time.

#include <string>

#include "host/fence_order.h"
#include "host/worker.h"
#include "tandem/impl/cpu/block_core.h"
#include "wire/mailbox.h"

namespace tandem::host {

/// The properties that all blocks of a grid share.
struct GridShape {
  cuda::Context context;
  int blocks = 1;
  int warps = 1;  ///< warps of a block
  std::string machine;
  bool has_multicast = false;
  wire::Mailbox* mailbox = nullptr;  ///< of a world of several nodes
};

/// The operations of one strand.
class BlockCore final : public cpu::BlockCore {
 public:
  BlockCore(Strand& strand, const GridShape& grid, int index)
      : BlockCore(strand, grid, index, grid.warps, 0, nullptr) {}

  bool reachable(int pe) const override {
    return grid_.mailbox == nullptr || grid_.mailbox->is_near(team().world_pe(pe));
  }
  bool has_multicast() const override { return grid_.has_multicast; }
  bool phantom() const override { return false; }
  bool backed(const void*) const override { return true; }
  Size tile_bytes() const override { return kTileBytes; }
  void require_slots(Signals, const char*, Site) const override {}

  void read(const void*, Size, Site, bool) override { acted(); }
  void read_scalar(void* to, const void* from, Size bytes, Site site) override;
  void read_all(Symm<const std::byte>, Size, Site) override { acted(); }
  void write(void* to, cpu::Buffer payload, Size bytes, Site site) override;
  void write_scalar(void* to, const void* value, Size bytes, Site site) override;
  void copy(void* to, const void* from, Size bytes, Site site) override;

  void put(void* to, const void* from, Size bytes, cpu::Completion completion, const cpu::SignalUpdate* signal,
           Site site) override;
  void get(void* to, const void* from, Size bytes, cpu::Completion completion, Site site) override;
  void fence(Site) override { order_.fence(); }
  void quiet(Site) override;

  void signal(const cpu::SignalUpdate& update, Order order, Site site) override;
  void wait(const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order, Site site) override;
  bool test(const Signal* word, Cmp cmp, Epoch value, Site site) override;
  Epoch next_epoch(Epochs epochs, Epoch count, Site site) override;

  std::uint64_t atomic(void* word, int bytes, cpu::AtomicOp op, std::uint64_t operand, std::uint64_t expected,
                       Scope scope, Order order, Site site) override;

  void check_packets(const void* to, Size bytes, Site site) const override;
  void write_packets(void* to, cpu::Buffer packets, const cpu::PacketForm& form, Site site) override;
  void wait_packets(const void* packets, Size count, const cpu::PacketForm& form, std::uint64_t flag,
                    Site site) override;

  void multimem(Symm<std::byte> at, Size bytes, cpu::MultimemOp op, Site site) override;
  void deliver_multimem(void* to, cpu::Buffer payload, Site site) override;

  void sync(Site) override {}
  void run_roles(int n, const int* widths, const std::function<void(int, cpu::BlockCore&)>& body, Site site) override;

 private:
  /// The size of a tile: the data that is loaded, computed and stored for it fits, or nearly fits, in the first-level
  /// caches. It holds whole packets of both kinds, so a tile's packets do not depend on how memory is cut into tiles.
  static constexpr Size kTileBytes = 144 * Size{sizeof(LL128Line::data)};

  /// `role` is 1, 2, ... for a role of the block, whose `order` it shares; 0 for the block itself.
  BlockCore(Strand& strand, const GridShape& grid, int index, int warps, int role, FenceOrder* order);
  /// Returns the place of an address on another node.
  std::optional<wire::Spot> far_spot(const void* address) const {
    return grid_.mailbox == nullptr ? std::nullopt : grid_.mailbox->far_spot(address);
  }
  void require_near(const void* address, const char* operation, Site site) const;
  /// Posts a request, for the operation at `address`. Returns its number.
  std::uint64_t post(const wire::Request& request);
  /// Posts a put, with a signal if there is one. Returns false if it is for no other node.
  bool post_put(void* to, const void* from, Size bytes, cpu::Completion completion, const cpu::SignalUpdate* signal,
                Site site);
  void require_word(const void* word, const char* operation, Site site) const;
  /// Copies bytes. If the blocks of the grid move more than the caches hold, the caches keep none of a long copy.
  void move(const char* operation, void* to, const void* from, Size bytes, Site site);
  /// Notes a look at a word that found `value`. If it may be part of a polling loop, lets other strands go on.
  void looked(const void* word, std::uint64_t value, std::uint64_t expected);
  /// Notes an operation other than a look.
  void acted() {
    strand_.acted();
    looked_at_ = nullptr;
  }

  Strand& strand_;
  const GridShape& grid_;
  const int warps_;
  const int role_;
  FenceOrder own_order_;
  FenceOrder& order_;
  const void* looked_at_ = nullptr;
  std::uint64_t looked_value_ = 0;
  unsigned looks_ = 0;
  Size moved_ = 0;  // bytes of this strand's copies, puts and gets
};

}  // namespace tandem::host
