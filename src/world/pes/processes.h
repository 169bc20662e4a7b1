#pragma once
/// A world whose PEs are processes, as the process of one of them sees it.

#include <vector>

#include "bootstrap/local/fd_exchange.h"
#include "bootstrap/local/shared_memory.h"
#include "bootstrap/rendezvous/world_member.h"
#include "world/pes/pes.h"

namespace tandem::world {

class Processes : public Pes {
 public:
  Processes(Devices& devices, const UniqueId& id, int pe, int pes, int device, const WorldOptions& options);
  ~Processes() override;

  int me() const { return member_.pe(); }
  bootstrap::WorldMember& member() { return member_; }
  bootstrap::FdExchange& exchange() { return exchange_; }

  const Pe& pe(int) const override { return pe_; }
  const Segment& segment() const override { return segment_; }
  Size allocate(int pe, bool symmetric, MemoryKind kind, Size bytes, const std::string& name,
                Size element_bytes) override;
  void free(int pe, bool symmetric, Size offset) override;
  void release(int pe, Size offset) override;
  std::string describe(const void* address) const override;
  std::optional<Size> bytes_from(int number, Size offset) const override {
    return allocator_.bytes_from(number, offset);
  }
  MismatchDetector* calls(int) const override { return calls_.get(); }
  void barrier() override { member_.barrier("barrier"); }
  std::optional<bootstrap::Failure> end(int pe, std::optional<std::uint32_t> by) const override;
  void abort_waits(int, const bootstrap::Failure& why) override { member_.fail(why); }
  void work_failed(int, const bootstrap::Failure& why) override { member_.fail(why); }
  wire::Proxy* proxy(int) const override { return proxy_.get(); }
  Profiler* profiler() const override { return profiler_.get(); }

  /// Throws the reason of the world's end, if this process knows of one. Any thread may call it.
  void check_alive() const;

  /// Returns the PEs for which this one waits on the device, if the host can read that. Adds the calls that only some
  /// PEs have made. Any thread may call it.
  std::string waits() const;

  WorldProcess::MemoryUse memory_use() const;
  void suspend();
  void resume();

  /// Waits for this device's work, and for the same call of the other processes unless the world is over. Throws
  /// nothing.
  void leave();

  /// Returns whether the world spans several hosts.
  bool has_hosts() const { return pes_of_host_ < num_pes(); }
  int pes_of_host() const { return pes_of_host_; }

  /// Sends the recordings of all PEs to PE 0. Collective; nothing may run meanwhile.
  void gather_profiles();

 private:
  int count_pes_of_host() const;
  int pes_of_computer() const override { return exchange_.pes_of_computer(); }
  std::byte* data_begin() const;
  std::string name_of(int pe) const override;
  void start_proxy();
  wire::Heartbeat heartbeat(wire::Access& access);
  void take_calls(int pe, View news);
  void wait_for_hosts(const std::vector<std::string>& addresses) const;
  void lose(const std::vector<int>& pes);
  void prepare(const WorldOptions& options);
  void wait_for_device() const;
  void barrier_or_report(const char* where);
  std::optional<bootstrap::Failure> unreported_failure() const;
  Size agree(MemoryKind kind, Size bytes, const std::string& name);
  void test_links();
  void share_calls();
  void start_profiler(const WorldOptions& options);
  std::vector<Bytes> recordings_for_first(const Bytes& own);
  Bytes pass_to_first(const Bytes& own, int from);

  int exceptions_before_;
  bootstrap::WorldMember member_;
  bootstrap::FdExchange exchange_;
  std::vector<int> device_numbers_;  // by PE
  Pe pe_;
  const Sharing sharing_;
  int pes_of_host_;
  HeapAllocator allocator_;
  Segment segment_;
  std::vector<std::byte> suspended_;  // the contents of the memory that was given back
  std::unique_ptr<bootstrap::SharedMemory> call_memory_;
  CallRecords far_calls_;  // of PEs of other hosts
  std::unique_ptr<MismatchDetector> calls_;
  std::unique_ptr<Profiler> profiler_;
  std::unique_ptr<bootstrap::SharedMemory> pulse_memory_;
  std::unique_ptr<wire::Proxy> proxy_;
};

}  // namespace tandem::world
