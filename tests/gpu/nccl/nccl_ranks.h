#pragma once
/// Ranks of a program for NCCL on GPUs or on this machine's processors, with functions of a library that is opened at
/// run time.

#include <cuda_runtime.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/nccl_library.h"

namespace tandem::check {

inline bool on_host() {
  const char* const device = std::getenv("TANDEM_DEVICE");
  return device != nullptr && std::string(device) == "host";
}

inline void require(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

/// A rank and the memory that its calls use.
struct Rank : Member {
  void use() const {
    if (on_host()) return;
    int gpus = 0;
    require(cudaGetDeviceCount(&gpus));
    require(cudaSetDevice(number % gpus));
  }
  void* allocate(std::size_t bytes) const {
    void* memory = nullptr;
    if (on_host()) return std::malloc(bytes);
    require(cudaMalloc(&memory, bytes));
    return memory;
  }
  void copy(void* to, const void* from, std::size_t bytes) const {
    if (on_host()) {
      std::memcpy(to, from, bytes);
    } else {
      require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
      require(cudaStreamSynchronize(stream));
    }
  }
  void synchronize() const {
    if (!on_host()) require(cudaStreamSynchronize(stream));
  }
};

constexpr int kMostRanks = 8;

/// Memory that the processes of one run share.
struct Shared {
  ncclUniqueId id;
  std::atomic<int> arrived{0};
  std::atomic<int> passed{0};
  std::atomic<int> failed{0};
  std::atomic<bool> ended{false};  // a rank ended early
  double times[kMostRanks] = {};

  /// Waits until all ranks are here. Throws if one will not be.
  void meet(int ranks) {
    const int goal = (arrived++ / ranks + 1) * ranks;
    while (arrived < goal) {
      if (ended) throw std::runtime_error("another rank ended early");
      std::this_thread::yield();
    }
  }
};

/// Returns the number of ranks that a text names, and 0 after a message if it names none.
inline int ranks_of(const char* text) {
  const int ranks = std::atoi(text);
  if (ranks >= 1 && ranks <= kMostRanks) return ranks;
  std::fprintf(stderr, "ranks: '%s' given, allowed is 1 to %d\n", text, kMostRanks);
  return 0;
}

inline Shared& make_shared_memory() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
  return *new (memory) Shared;
}

/// Runs `body(rank)` in a process for each rank and returns whether all ended with 0.
inline bool in_processes(Shared& shared, int ranks, const std::function<int(int)>& body) {
  shared.ended = false;
  shared.arrived = 0;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      int code = 1;
      try {
        code = body(rank);
      } catch (const std::exception& error) {
        std::printf("FAILED rank %d: %s\n", rank, error.what());
      }
      std::fflush(nullptr);
      if (code != 0) shared.ended = true;
      _exit(code);
    }
    children.push_back(child);
  }
  bool well = true;
  for (const pid_t child : children) {
    int status = 0;
    well = waitpid(child, &status, 0) == child && status == 0 && well;
  }
  return well;
}

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tandem::check
