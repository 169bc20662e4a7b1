#pragma once
/// A world as C programs hold it: plans made as they are needed, staging for memory that is not the heap's.

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/cuda.h"
#include "tandem/operators.h"
#include "tandem/send_recv.h"

namespace tandem::c {

struct EventDestroy {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};

/// One collective call.
struct Call {
  Collective collective;
  const void* in;
  void* out;
  Size count;
  DType type;
  ReduceOp op;
  int root;
  cudaStream_t stream;
};

class CWorld {
 public:
  CWorld(std::unique_ptr<CudaProcess> process, Size staging_bytes);

  int pe() const { return process_->pe(); }
  int pes() const { return process_->pes(); }
  CudaProcess& process() { return *process_; }
  void barrier() { world().barrier(); }
  void* allocate(Size bytes);
  void free(const void* pointer);
  void register_memory(void* pointer, Size bytes);
  void unregister_memory(void* pointer);
  void run(const Call& call);
  void send_recv(const std::vector<Send>& sends, const std::vector<Receive>& receives, cudaStream_t stream);
  /// From one place to another of this PE, in stream order.
  void copy(void* to, const void* from, Size bytes, cudaStream_t stream);
  void synchronize(cudaStream_t stream);

  std::unique_ptr<OperatorPlan> make_plan(Operator op, const OperatorOptions& options) {
    return make_operator(world(), op, options);
  }
  Stream borrow_stream(cudaStream_t stream) { return process_->borrow_stream(stream); }
  /// What comes next in `stream` runs behind the last call, in whatever stream that was.
  void order_after_last(cudaStream_t stream);

 private:
  /// Memory that all PEs reach, and where the caller sees it.
  struct Buffer {
    const std::byte* begin;
    Size bytes;
    Symm<std::byte> memory;
  };
  /// Beside what is called: the size class, and whether in and out are local.
  using Key = std::tuple<Collective, DType, ReduceOp, int, Size, bool, bool>;

  World& world() { return process_->world(); }
  CollectivePlan& plan_for(const Call& call, bool local_in, bool local_out);
  /// Nothing where these bytes are not in one of those buffers.
  std::optional<Symm<std::byte>> shared(const void* pointer, Size bytes) const;

  std::unique_ptr<CudaProcess> process_;
  CollectiveStaging staging_;
  std::vector<Buffer> buffers_;
  int allocations_ = 0;
  /// Made with the world, so that a message needs no more than its two PEs.
  std::unique_ptr<SendRecvGroup> group_;
  bool has_sent_ = false;
  std::map<Key, std::unique_ptr<CollectivePlan>> plans_;
  std::unique_ptr<CUevent_st, EventDestroy> end_of_last_;
  cudaStream_t last_stream_ = nullptr;
  bool has_run_ = false;
};

}  // namespace tandem::c
