#pragma once
/// NCCL as the baseline of measurements, loaded at run time if the machine has it.

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <string>

#include "tools/tandem/data/collective_data.h"
#include "tools/tandem/data/shared.h"

namespace tandem::cli {

/// The memory of NCCL's calls.
enum class NcclBuffers {
  kPlain,   ///< cudaMalloc
  kWindow,  ///< ncclMemAlloc, registered as a symmetric window (NCCL 2.27 and newer)
};

/// The functions of one library file. In place of the types of nccl.h, communicators and windows are opaque pointers,
/// and enumerations are ints.
struct NcclLibrary {
  struct UniqueId {
    char bytes[128];
  };
  using Handle = void*;

  /// Throws Unsupported if the library cannot be loaded. Switches NVLink multicast off unless NCCL_NVLS_ENABLE is set,
  /// because Tandem does not use it either.
  explicit NcclLibrary(const std::string& file);

  int (*get_version)(int*);
  const char* (*error_string)(int);
  int (*get_unique_id)(UniqueId*);
  int (*init_rank)(Handle* communicator, int ranks, UniqueId id, int rank);
  int (*destroy)(Handle communicator);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, Handle, cudaStream_t);
  int (*all_gather)(const void*, void*, std::size_t, int type, Handle, cudaStream_t);
  int (*reduce_scatter)(const void*, void*, std::size_t, int type, int op, Handle, cudaStream_t);
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, Handle, cudaStream_t);
  int (*reduce)(const void*, void*, std::size_t, int type, int op, int root, Handle, cudaStream_t);
  int (*send)(const void*, std::size_t, int type, int peer, Handle, cudaStream_t);
  int (*receive)(void*, std::size_t, int type, int peer, Handle, cudaStream_t);
  // Null in versions without them.
  int (*allocate)(void**, std::size_t) = nullptr;
  int (*free)(void*) = nullptr;
  int (*register_window)(Handle, void*, std::size_t, Handle* window, int flags) = nullptr;
  int (*deregister_window)(Handle, Handle window) = nullptr;

  /// Throws RuntimeFailure.
  void check(int code, const char* what) const;
  /// Returns "2.28.9".
  std::string version() const;
};

/// One PE's part of NCCL.
class NcclPeer {
 public:
  /// Collective over the world, like all its functions. Throws RuntimeFailure if NCCL cannot start.
  NcclPeer(const NcclLibrary& library, World& world, Shared& shared);
  ~NcclPeer();
  NcclPeer(const NcclPeer&) = delete;
  NcclPeer& operator=(const NcclPeer&) = delete;

  /// Allocates memory for NCCL's calls. Throws Unsupported for windows if this NCCL has none.
  void* allocate(NcclBuffers kind, Size bytes);
  /// Enqueues one call. Throws Unsupported if NCCL has no such call (premul_sum).
  void run(const CollectiveCall& call, const void* in, void* out, cudaStream_t stream) const;

 private:
  struct Memory {
    void* address;
    void* window;
  };
  void move(const CollectiveCall& call, const void* in, void* out, cudaStream_t stream) const;

  const NcclLibrary& nccl_;
  int pe_;
  void* communicator_ = nullptr;
  std::vector<Memory> memory_;
};

}  // namespace tandem::cli
