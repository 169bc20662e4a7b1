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

class CallLog;

namespace detail {

/// What a backend provides for a world.
class WorldBackend : public HeapOwner {
 public:
  virtual Team team() const = 0;
  virtual const Machine& machine() const = 0;
  virtual bool phantom() const = 0;
  /// `control` memory (signals, epochs, packets) starts as zeros and exists in phantom mode too. Address on PE 0.
  virtual void* allocate_symmetric(Size bytes, const std::string& name, Size element_bytes, bool control) = 0;
  virtual void* allocate_local(Size bytes, const std::string& name, Size element_bytes, bool control) = 0;
  /// `memory`: any PE's copy.
  virtual void free_symmetric(const void* memory) = 0;
  virtual Size stride() const = 0;
  /// Bytes from there to the end of the heap's buffer that holds it, 0 where none does; nothing for memory that is not
  /// the heap's.
  virtual std::optional<Size> bytes_from(const void* memory) const = 0;
  virtual void copy_in(void* to, const void* from, Size bytes) = 0;
  virtual void copy_out(void* to, const void* from, Size bytes) = 0;
  virtual std::shared_ptr<StreamBackend> make_stream(const std::string& name) = 0;
  virtual void check_launch(const KernelLaunch& kernel) const = 0;
  /// Throws Unsupported where there is no GEMM with hooks of these types, layout and tile.
  virtual void check_gemm(const Gemm&) const {}
  virtual void barrier() = 0;
  virtual double time_us() const = 0;
  /// Whether plans compare what the PEs call (Agreement).
  virtual bool checks_calls() const { return false; }
  /// Where plans note what this PE calls; null where nobody compares it.
  virtual CallLog* calls() { return nullptr; }

  /// Where in the host program the next call stands, for reports.
  Site site = {};

  NotedAllocations note_allocations() { return {noted_, self_}; }
  void note(const void* memory, bool is_symmetric) {
    if (noted_ != nullptr) noted_->add(memory, is_symmetric);
  }

 private:
  PlanMemory* noted_ = nullptr;
  /// Plans may live longer.
  std::shared_ptr<HeapOwner*> self_ = std::make_shared<HeapOwner*>(this);
};

/// Bytes of `count` elements: where that overflows, more than any memory has.
constexpr Size bytes_of(Size count, Size element_bytes) {
  constexpr Size most = std::numeric_limits<Size>::max();
  return count > most / element_bytes ? most : max(count, -1) * element_bytes;
}

template <class T>
inline constexpr bool is_control =
    std::is_same_v<T, Signal> || std::is_same_v<T, LLPacket> || std::is_same_v<T, LL128Line>;

}  // namespace detail

/// Memory of the same size at the same offset on every PE. Buffers live until they are freed, or as long as the world.
class SymmetricHeap {
 public:
  /// For backends; programs call World::heap.
  explicit SymmetricHeap(detail::WorldBackend& backend) : backend_(&backend) {}

  /// A buffer of `count` elements on every PE. Collective: all PEs allocate the same sizes and names in the same order
  /// (OpenSHMEM 1.5 section 9.3); InvalidArgument where they differ, OutOfMemory (asked, left) where it does not fit.
  /// The host programs meet here, as in a barrier: what it returns may be written on any PE at once. Signals and
  /// packets start as zeros; the contents of data are undefined.
  template <class T>
  Symm<T> allocate(Size count, const std::string& name) {
    auto* const on_pe0 = static_cast<T*>(
        backend_->allocate_symmetric(detail::bytes_of(count, sizeof(T)), name, sizeof(T), detail::is_control<T>));
    backend_->note(on_pe0, true);
    return {on_pe0, backend_->stride(), backend_->team().me};
  }
  /// Allocates `count` signal words on every PE, as `allocate` does. They start as zeros.
  Signals signals(Size count, const std::string& name) { return allocate<Signal>(count, name); }

  /// A buffer of this PE alone. Epochs are control memory; symmetric data of that type (u64) is data. A heap that may
  /// grow does so for symmetric buffers alone: what all PEs need may as well be one.
  template <class T>
  T* allocate_local(Size count, const std::string& name) {
    auto* const memory = static_cast<T*>(backend_->allocate_local(detail::bytes_of(count, sizeof(T)), name, sizeof(T),
                                                                  detail::is_control<T> || std::is_same_v<T, Epoch>));
    backend_->note(memory, false);
    return memory;
  }

  /// Gives a buffer back. Collective, one of the same order as allocations: all PEs free the same, and the host
  /// programs meet here, as in a barrier (OpenSHMEM 1.5 section 9.3, shmem_free). No work that uses it may be left on
  /// any PE, in captured graphs either. `buffer` is the handle that `allocate` gave. Throws InvalidArgument for any
  /// other, and where PEs differ.
  template <class T>
  void free(const Symm<T>& buffer) {
    backend_->free_symmetric(buffer.local());
  }
  /// Gives a buffer of this PE alone back; not collective. Throws InvalidArgument for what is none.
  void free_local(const void* buffer) { backend_->free_local(buffer); }

  /// Epoch counters for grids of up to `blocks` blocks.
  Epochs epochs(Size blocks, const std::string& name) { return {allocate_local<Epoch>(blocks, name)}; }

 private:
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
  /// True where data has no contents: timing and signals only.
  bool phantom() const { return backend_->phantom(); }

  /// All PEs.
  Team team() const { return backend_->team(); }
  /// The PEs of this PE's node: load/store reachable.
  Team node_team() const;
  /// The PEs with this PE's number within its node, one a node.
  Team rail_team() const;
  /// PEs `first`, `first + stride`, ..., `size` of them. Throws InvalidArgument where one lies outside of the world.
  Team split_strided(int first, int stride, int size) const;

  /// Returns the heap, the same object in each call.
  SymmetricHeap& heap() { return heap_; }
  /// Copies `bytes` bytes from host memory to a buffer of the heap, of this PE or a reachable one. Blocks;
  /// ordered with no stream's work: synchronize first. The only way for a host program to see data that runs on every
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
  /// Throws where Stream::launch<K> would refuse this grid, on all PEs alike: what takes several launches asks before
  /// the first.
  template <class K>
  void check_launch(Grid grid) const {
    backend_->check_launch({std::string(type_name<K>()), grid, team(), nullptr, detail::DeviceKernelOf<K>::kernel});
  }

  /// Throws Unsupported where Stream::gemm has no kernel with hooks of these types, layout and tile.
  void check_gemm(const Gemm& gemm) const { backend_->check_gemm(gemm); }

  /// Blocks this host program until every PE's is here (device work is not waited for).
  void barrier() { backend_->barrier(); }
  /// Whether the devices compare operation, type and count before each collective.
  bool checks_calls() const { return backend_->checks_calls(); }
  /// For plans: while the result lives, it notes what this PE allocates.
  detail::NotedAllocations note_allocations() { return backend_->note_allocations(); }
  /// For plans.
  CallLog* calls() { return backend_->calls(); }
  /// For plans: how many bytes a buffer of the heap has from there on, 0 where there is none; nothing for memory that
  /// is not the heap's.
  std::optional<Size> bytes_from(const void* memory) const { return backend_->bytes_from(memory); }
  /// Microseconds since the world began: simulated time in the simulator.
  double time_us() const { return backend_->time_us(); }

 private:
  detail::WorldBackend* backend_;
  SymmetricHeap heap_;
};

}  // namespace tandem
