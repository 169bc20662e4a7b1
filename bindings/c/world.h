#pragma once
/// A world as C programs hold it: plans made as they are needed, staging for what peers do not reach.

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "call_order.h"
#include "plans.h"
#include "stream_order.h"
#include "tandem/advanced/transport_memory.h"
#include "tandem/barrier.h"
#include "tandem/collectives.h"
#include "tandem/layer/expert_gemms.h"
#include "tandem/operators.h"
#include "tandem/send_recv.h"
#include "tandem/worlds.h"

namespace tandem::c {

/// One collective call.
struct Call {
  Operation what;
  const void* in;
  void* out;
  Size count;
  void* stream;
  /// Buffers are taken for memory that peers do not reach, wherever they lie.
  bool any_memory = false;
  /// The factor of this PE's values, with ReduceOp::kPremulSum and no other.
  std::optional<RunScale> scale = {};
};

/// From one place to another of this PE.
struct OwnPart {
  void* to = nullptr;
  const void* from = nullptr;
  Size bytes = 0;
};

/// Numbers of allocations or registrations, from 1. The lowest free number comes first. PEs that allocate and free
/// alike thus give the same numbers, and numbers stay small enough for a Place.
class BufferNumbers {
 public:
  explicit BufferNumbers(const char* what) : what_(what) {}
  /// The next one to be taken. Throws OutOfMemory where there is none.
  int next() const;
  void take(int number) {
    if (freed_.erase(number) == 0) most_ = number;
  }
  void free(int number) { freed_.insert(number); }

 private:
  const char* what_;
  int most_ = 0;
  std::set<int> freed_;
};

class CWorld {
 public:
  /// `any_memory`: buffers are taken for memory that peers do not reach, wherever they lie.
  CWorld(std::unique_ptr<WorldProcess> process, Size staging_bytes, bool any_memory, const Controls& controls);

  int pe() const { return process_->pe(); }
  int pes() const { return process_->pes(); }
  /// Its device.
  int device() const { return process_->device(); }
  DeviceKind kind() const { return process_->kind(); }
  WorldProcess& process() { return *process_; }
  void barrier() { world().barrier(); }
  /// Enqueues a barrier. The first call, which all PEs make, allocates its words.
  void barrier_on(void* stream);
  void* allocate(Size bytes);
  void free(const void* pointer);
  void register_memory(void* pointer, Size bytes);
  void unregister_memory(void* pointer);
  /// Takes registered memory for memory that peers do not reach from now on: its owner has freed it.
  void hide(const void* pointer);
  /// Returns the address on `pe` of `bytes` bytes of symmetric memory. Throws InvalidArgument for other memory.
  void* on_pe(const void* pointer, Size bytes, int pe, const char* what) const;
  void run(const Call& call);
  /// Messages to this PE are one copy.
  void send_recv(const std::vector<Send>& sends, const std::vector<Receive>& receives, const OwnPart& own,
                 void* stream);
  void synchronize(void* stream);

  std::unique_ptr<OperatorPlan> make_plan(Operator op, const OperatorOptions& options) {
    return make_operator(world(), op, options);
  }
  /// Returns the memory that plans share. The first call, which all PEs make, makes it.
  const std::shared_ptr<TransportMemory>& transport_memory() {
    if (transport_memory_ == nullptr) transport_memory_ = std::make_shared<TransportMemory>(world());
    return transport_memory_;
  }
  /// Returns make(world, any_memory), a plan of a call of tandem/layer; any_memory: buffers lie anywhere.
  template <class Make>
  auto make_layer_plan(const Make& make) {
    return make(world(), any_memory_);
  }
  std::unique_ptr<ExpertPlan> make_experts_plan(const ExpertOptions& options) {
    auto plan = make_experts(world(), options);
    checks_.push_back(plan->refused_choices());
    return plan;
  }
  std::unique_ptr<ExpertGemmPlan> make_expert_gemms_plan(const ExpertGemmOptions& options) {
    auto plan = make_expert_gemms(world(), options);
    checks_.push_back(plan->experts().refused_choices());
    return plan;
  }
  /// Returns the handle of a heap or registered buffer, or of other memory of this PE; none for NULL.
  Symm<std::byte> handle_of(const void* pointer);
  Stream borrow_stream(void* stream) { return process_->borrow_stream(stream); }
  /// Calls `enqueue(is_captured)`. Its work in `stream` runs after the previous call, in any stream. Throws if the
  /// world is over.
  template <class Enqueue>
  void in_order(void* stream, const Enqueue& enqueue) {
    process_->check();  // a wait may have given up since, and the caller may have synchronized without this library
    order_of_streams_->then(stream, enqueue);
  }

 private:
  /// Memory that all PEs reach, and where the caller sees it.
  struct Buffer {
    const std::byte* begin;
    Size bytes;
    Symm<std::byte> memory;
    bool is_registered;
    int number;
  };

  World& world() { return process_->world(); }
  void enqueue(const Call& call, bool is_captured);
  BufferNumbers& numbers_of(const Buffer& buffer) { return buffer.is_registered ? registrations_ : allocations_; }
  void add(const Buffer& buffer);
  void remove(const void* begin);
  /// Where these bytes lie, in one of those buffers or elsewhere.
  Place place_of(const void* pointer, Size bytes) const;

  std::unique_ptr<WorldProcess> process_;
  bool any_memory_;
  std::shared_ptr<TransportMemory> transport_memory_;
  std::optional<TeamBarrier> barrier_;
  std::vector<Buffer> buffers_;
  BufferNumbers allocations_{"allocations"};
  BufferNumbers registrations_{"registrations"};
  /// Made with the world, so that a message needs no more than its two PEs.
  std::unique_ptr<SendRecvGroup> group_;
  bool has_sent_ = false;
  std::vector<std::weak_ptr<const std::function<void()>>> checks_;  // of each synchronize, see Stream
  std::unique_ptr<Plans> plans_;                                    // at a place of its own: the order looks there
  std::unique_ptr<CallOrder> order_;
  std::unique_ptr<StreamOrder> order_of_streams_;
};

}  // namespace tandem::c
