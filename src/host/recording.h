#pragma once
/// Records of grids on CPUs, in the form of GPUs' records (tandem/impl/cuda/record.h): the input of timelines.
///
/// A block whose work is recorded runs on a RecordedCore. It passes the operations on to the block's own engine and
/// notes their begin and end. A block that is not recorded has no extra cost.

#include <cstdint>
#include <vector>

#include "tandem/impl/cpu/block_core.h"
#include "tandem/impl/cuda/record.h"

namespace tandem::host {

/// The records of a grid, one list for each block. Each block's thread writes its own list.
struct GridRecords {
  int most_operations = 0;  ///< that a block keeps
  std::vector<std::vector<cuda::Record>> blocks;
};

/// The records of one block while it runs. Its roles share them, since they run on the block's thread.
class BlockRecords {
 public:
  /// Begins the life of block `block`.
  BlockRecords(GridRecords& grid, int block);
  /// Ends it.
  ~BlockRecords();
  BlockRecords(const BlockRecords&) = delete;
  BlockRecords& operator=(const BlockRecords&) = delete;

  void add(const cuda::Record& record);

 private:
  std::vector<cuda::Record>& records_;
  const std::size_t most_;
  std::uint64_t operations_ = 0;
};

/// Records an operation of `role` that lasts until the end of the scope. It does nothing without `records`.
class RecordedSpan {
 public:
  RecordedSpan(BlockRecords* records, const cuda::Record& subject);
  ~RecordedSpan();
  RecordedSpan(const RecordedSpan&) = delete;
  RecordedSpan& operator=(const RecordedSpan&) = delete;

 private:
  BlockRecords* const records_;
  cuda::Record record_;
};

/// The engine of a recorded block or role.
class RecordedCore final : public cpu::BlockCore {
 public:
  /// `role` is 1, 2, ... for a role of the block; 0 for the block itself.
  RecordedCore(cpu::BlockCore& core, BlockRecords& records, int role = 0);

  bool reachable(int pe) const override { return core_.reachable(pe); }
  bool has_multicast() const override { return core_.has_multicast(); }
  bool phantom() const override { return core_.phantom(); }
  bool backed(const void* address) const override { return core_.backed(address); }
  Size tile_bytes() const override { return core_.tile_bytes(); }
  void require_slots(Signals words, const char* operation, Site site) const override {
    core_.require_slots(words, operation, site);
  }

  void read(const void* from, Size bytes, Site site, bool is_moved) override;
  void read_scalar(void* to, const void* from, Size bytes, Site site) override;
  void read_all(Symm<const std::byte> from, Size bytes, Site site) override;
  void write(void* to, cpu::Buffer payload, Size bytes, Site site) override;
  void write_scalar(void* to, const void* value, Size bytes, Site site) override;
  void copy(void* to, const void* from, Size bytes, Site site) override;
  void put(void* to, const void* from, Size bytes, cpu::Completion completion, const cpu::SignalUpdate* signal,
           Site site) override;
  void get(void* to, const void* from, Size bytes, cpu::Completion completion, Site site) override;
  void fence(Site site) override;
  void quiet(Site site) override;
  void signal(const cpu::SignalUpdate& update, Order order, Site site) override;
  void wait(const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order, Site site) override;
  bool test(const Signal* word, Cmp cmp, Epoch value, Site site) override;
  Epoch next_epoch(Epochs epochs, Epoch count, Site site) override;
  std::uint64_t atomic(void* word, int bytes, cpu::AtomicOp op, std::uint64_t operand, std::uint64_t expected,
                       Scope scope, Order order, Site site) override;
  void check_packets(const void* to, Size bytes, Site site) const override { core_.check_packets(to, bytes, site); }
  void write_packets(void* to, cpu::Buffer packets, const cpu::PacketForm& form, Site site) override;
  void wait_packets(const void* packets, Size count, const cpu::PacketForm& form, std::uint64_t flag,
                    Site site) override;
  void multimem(Symm<std::byte> at, Size bytes, cpu::MultimemOp op, Site site) override;
  void deliver_multimem(void* to, cpu::Buffer payload, Site site) override;
  void sync(Site site) override { core_.sync(site); }
  void run_roles(int n, const int* widths, const std::function<void(int, cpu::BlockCore&)>& body, Site site) override;

 private:
  cuda::Record subject(cuda::RecordKind kind, const void* address, Size bytes) const;
  /// Notes an operation that lasts until the next one of this block or role.
  void note_begin(cuda::RecordKind kind, const void* address, Size bytes);
  void note_signal(const cpu::SignalUpdate& update);
  /// Ends the operation that lasted until now.
  void note_end() { note_begin(cuda::RecordKind::kEnd, nullptr, 0); }
  /// Returns whether the last operation was a look at the same word, of the same polling loop.
  bool looks_again(const void* word);

  cpu::BlockCore& core_;
  BlockRecords& records_;
  const std::uint8_t role_;
  const void* looked_at_ = nullptr;
};

/// Calls body(engine, records) for a block. Without `grid` the engine is the block's own, and there are no records.
template <class Body>
void with_records(GridRecords* grid, cpu::BlockCore& core, const Body& body) {
  if (grid == nullptr) return body(core, nullptr);
  BlockRecords records(*grid, core.index());
  RecordedCore recorded(core, records);
  body(recorded, &records);
}

}  // namespace tandem::host
