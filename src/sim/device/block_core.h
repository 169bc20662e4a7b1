#pragma once
/// The simulator's implementation of a Block's operations: cost, transport, delivery, blocking.

#include "sim/device/role.h"
#include "tandem/impl/cpu/block_core.h"

namespace tandem::sim {

class BlockCore final : public cpu::BlockCore {
 public:
  /// Must be called within the role's actor.
  explicit BlockCore(Role& role)
      : cpu::BlockCore(role.team, role.index, role.count, role.engine().current()->id() + 1, false), role_(&role) {}

  bool reachable(int pe) const override;
  bool has_multicast() const override;
  bool phantom() const override;
  bool backed(const void* address) const override;
  Size tile_bytes() const override;
  void require_slots(Signals words, const char* operation, Site site) const override;

  void read(const void* from, Size bytes, Site site, bool is_moved = false) override;
  void read_scalar(void* to, const void* from, Size bytes, Site site) override;
  void read_all(Symm<const std::byte> from, Size bytes, Site site) override;
  void write(void* to, Buffer payload, Size bytes, Site site) override;
  void write_scalar(void* to, const void* value, Size bytes, Site site) override;
  void copy(void* to, const void* from, Size bytes, Site site) override;

  void put(void* to, const void* from, Size bytes, Completion completion, const SignalUpdate* signal,
           Site site) override;
  void get(void* to, const void* from, Size bytes, Completion completion, Site site) override;
  void fence(Site site) override;
  void quiet(Site site) override;

  void signal(const SignalUpdate& update, Order order, Site site) override;
  void wait(const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order, Site site) override;
  bool test(const Signal* word, Cmp cmp, Epoch value, Site site) override;
  Epoch next_epoch(Epochs epochs, Epoch count, Site site) override;

  std::uint64_t atomic(void* word, int bytes, AtomicOp op, std::uint64_t operand, std::uint64_t expected, Scope scope,
                       Order order, Site site) override;

  void check_packets(const void* to, Size bytes, Site site) const override;
  void write_packets(void* to, Buffer packets, const PacketForm& form, Site site) override;
  void wait_packets(const void* packets, Size count, const PacketForm& form, std::uint64_t flag, Site site) override;

  void multimem(Symm<std::byte> at, Size bytes, MultimemOp op, Site site) override;
  void deliver_multimem(void* to, Buffer payload, Site site) override;

  void sync(Site site) override;
  void run_roles(int n, const int* widths, const std::function<void(int, cpu::BlockCore&)>& body, Site site) override;

 private:
  Role* role_;
};

}  // namespace tandem::sim
