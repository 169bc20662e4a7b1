#pragma once
/// A World is this process's view of n processing elements (PEs; one PE is one GPU, "rank" in user-facing options).

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "tandem/impl/plan_memory.h"
#include "tandem/machine.h"
#include "tandem/stream.h"
#include "tandem/symm.h"

namespace tandem {

class MismatchDetector;

/// The devices that run a world's PEs. Plans make their choices for this kind.
enum class DeviceKind {
  kSimulated,  ///< the simulator; times are predictions of a machine model
  kGpu,        ///< real GPUs
  kHost,       ///< the CPUs of this computer
};

namespace detail {

/// The interface of a world's backend.
class WorldBackend : public HeapOwner {
 public:
  virtual Team team() const = 0;
  virtual const Machine& machine() const = 0;
  virtual DeviceKind device() const = 0;
  virtual bool phantom() const = 0;
  /// `control` memory (signals, epochs, indices, packets) starts as zeros and exists in phantom mode, too. Returns the
  /// address on PE 0.
  virtual void* allocate_symmetric(Size bytes, const std::string& name, Size element_bytes, bool control) = 0;
  virtual void* allocate_local(Size bytes, const std::string& name, Size element_bytes, bool control) = 0;
  /// `memory` may be any PE's copy.
  virtual void free_symmetric(const void* memory) = 0;
  virtual Size stride() const = 0;
  /// Returns the bytes from there to the end of the heap buffer that holds it, or 0 if no buffer does. Returns nothing
  /// for memory outside the heap.
  virtual std::optional<Size> bytes_from(const void* memory) const = 0;
  virtual void copy_in(void* to, const void* from, Size bytes) = 0;
  virtual void copy_out(void* to, const void* from, Size bytes) = 0;
  virtual std::shared_ptr<StreamBackend> make_stream(const std::string& name) = 0;
  virtual void check_launch(const KernelLaunch& kernel) const = 0;
  /// Throws Unsupported if there is no fused GEMM of these types, layout and tile.
  virtual void check_gemm(const Gemm&) const {}
  virtual void barrier() = 0;
  virtual double time_us() const = 0;
  /// Returns whether the devices compare the calls of the PEs (CallComparison).
  virtual bool checks_calls() const { return false; }
  /// Returns the log of this PE's calls, or null if calls are not compared.
  virtual MismatchDetector* calls() { return nullptr; }

  /// The place of the next call in the host program, for reports.
  Site site = {};

  NotedAllocations note_allocations() { return {noted_, self_}; }
  void note(const void* memory, bool is_symmetric) {
    if (noted_ != nullptr) noted_->add(memory, is_symmetric);
  }

 private:
  PlanMemory* noted_ = nullptr;
  /// A plan may live longer than the world.
  std::shared_ptr<HeapOwner*> self_ = std::make_shared<HeapOwner*>(this);
};

/// Returns the bytes of `count` elements. An overflow gives more than any memory has.
constexpr Size bytes_of(Size count, Size element_bytes) {
  constexpr Size most = std::numeric_limits<Size>::max();
  return count > most / element_bytes ? most : max(count, -1) * element_bytes;
}

template <class T>
inline constexpr bool is_control = std::is_same_v<T, Signal> || std::is_same_v<T, Index> ||
                                   std::is_same_v<T, LLPacket> || std::is_same_v<T, LL128Line>;

}  // namespace detail

/// Memory of the same size at the same offset on every PE. Buffers live until they are freed, or as long as the world.
class SymmetricHeap {
 public:
  /// For backends; programs call World::heap.
  explicit SymmetricHeap(detail::WorldBackend& backend) : backend_(&backend) {}

  /// Allocates a buffer of `count` elements on every PE. Collective: all PEs allocate the same sizes and names in the
  /// same order (OpenSHMEM 1.5 section 9.3). Throws InvalidArgument if they differ, OutOfMemory (asked, left) if it
  /// does not fit. The call is a barrier of the host programs, so any PE may write the buffer at once. Signals,
  /// indices and packets start as zeros; the contents of data are undefined.
  template <class T>
  Symm<T> allocate(Size count, const std::string& name) {
    return allocate_bytes(count, sizeof(T), detail::is_control<T>, name).template as<T>();
  }
  /// Allocates `count` signal words on every PE, as `allocate` does. They start as zeros.
  Signals signals(Size count, const std::string& name) { return allocate<Signal>(count, name); }

  /// Allocates a buffer of this PE. Epochs are control memory, but symmetric data of that type (u64) is data. Only
  /// symmetric buffers make the heap grow.
  template <class T>
  T* allocate_local(Size count, const std::string& name) {
    constexpr bool kIsControl = detail::is_control<T> || std::is_same_v<T, Epoch>;
    return static_cast<T*>(allocate_local_bytes(count, sizeof(T), kIsControl, name));
  }

  /// Frees a buffer. Collective, in one order with allocations: all PEs free the same buffer. The call is a barrier of
  /// the host programs (OpenSHMEM 1.5 section 9.3, shmem_free). No PE may have pending work, or captured graphs, that
  /// use the buffer. `buffer` is the handle from `allocate`. Throws InvalidArgument for any other handle, or if PEs
  /// differ.
  template <class T>
  void free(const Symm<T>& buffer) {
    backend_->free_symmetric(buffer.local());
  }
  /// Frees a buffer of this PE; not collective. Throws InvalidArgument if there is no such buffer.
  void free_local(const void* buffer) { backend_->free_local(buffer); }

  /// Returns epoch counters for grids of up to `blocks` blocks.
  Epochs epochs(Size blocks, const std::string& name) { return {allocate_local<Epoch>(blocks, name)}; }

 private:
  Symm<std::byte> allocate_bytes(Size count, Size element_bytes, bool is_control, const std::string& name);
  void* allocate_local_bytes(Size count, Size element_bytes, bool is_control, const std::string& name);

  detail::WorldBackend* backend_;
};

/// The view that this PE's host program has of all PEs.
class World {
 public:
  /// For backends; programs get worlds from Simulation, CudaThreads or CudaProcess.
  explicit World(detail::WorldBackend& backend) : backend_(&backend), heap_(backend) {}

  /// Returns this PE's number, from 0.
  int pe() const { return backend_->team().me; }
  /// Returns the number of PEs.
  int num_pes() const { return backend_->team().size; }
  /// Returns the machine model; on GPUs the figures that the driver reports.
  const Machine& machine() const { return backend_->machine(); }
  /// Returns the kind of device that the PEs run on.
  DeviceKind device() const { return backend_->device(); }
  /// Returns whether the PEs run on real GPUs.
  bool on_gpus() const { return device() == DeviceKind::kGpu; }
  /// Returns whether data has no contents: only timing and signals are simulated.
  bool phantom() const { return backend_->phantom(); }

  /// Returns the team of all PEs.
  Team team() const { return backend_->team(); }
  /// Returns the PEs of this PE's node, which are load/store reachable.
  Team node_team() const;
  /// Returns the PEs with this PE's number within its node, one for each node.
  Team rail_team() const;
  /// Returns PEs `first`, `first + stride`, ..., `size` in all. Throws InvalidArgument if one lies outside of the
  /// world.
  Team split_strided(int first, int stride, int size) const;

  /// Returns the heap, the same object in each call.
  SymmetricHeap& heap() { return heap_; }
  /// Copies `bytes` bytes from host memory to a heap buffer of this PE or a reachable one, and back. It blocks and is
  /// not ordered with streams, so synchronize first. It is the only access of host programs to data that works on every
  /// backend.
  void copy_in(void* to, const void* from, Size bytes, Site site = Site::here()) {
    backend_->site = site;
    backend_->copy_in(to, from, bytes);
  }
  /// Copies from a buffer of the heap to host memory; see copy_in.
  void copy_out(void* to, const void* from, Size bytes, Site site = Site::here()) {
    backend_->site = site;
    backend_->copy_out(to, from, bytes);
  }
  /// Makes a stream of this PE. Reports and timelines show its name.
  Stream make_stream(const std::string& name) { return Stream(backend_->make_stream(name)); }
  /// Throws if Stream::launch<K> would refuse this grid, on all PEs alike. Code with several launches calls it before
  /// the first.
  template <class K>
  void check_launch(Grid grid) const {
    check_launch(detail::kernel_type<K>(), grid);
  }
  /// The same for a kernel whose type the caller does not know.
  void check_launch(const detail::KernelType& kernel, Grid grid) const;

  /// Throws Unsupported if Stream::gemm has no kernel of a fused GEMM of these types, layout and tile.
  void check_gemm(const Gemm& gemm) const { backend_->check_gemm(gemm); }

  /// Blocks this host program until every PE's host program is here. It does not wait for device work.
  void barrier() { backend_->barrier(); }
  /// Returns whether the devices compare operation, type and count before each collective.
  bool checks_calls() const { return backend_->checks_calls(); }
  /// Used by plans: while the result lives, it records this PE's allocations.
  detail::NotedAllocations note_allocations() { return backend_->note_allocations(); }
  /// Used by plans.
  MismatchDetector* calls() { return backend_->calls(); }
  /// Used by plans: see WorldBackend::bytes_from.
  std::optional<Size> bytes_from(const void* memory) const { return backend_->bytes_from(memory); }
  /// Returns the microseconds since the world began, in the simulator those of simulated time.
  double time_us() const { return backend_->time_us(); }

 private:
  detail::WorldBackend* backend_;
  SymmetricHeap heap_;
};

}  // namespace tandem
