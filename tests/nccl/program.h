#pragma once
/// Programs against NCCL's interface, with threads as ranks.

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bindings/nccl/abi.h"

namespace tandem::nccl_test {

struct Rank {
  ncclComm_t comm = nullptr;
  int rank = 0;
  int n = 0;
};

/// "" for success, else the code and the text.
inline std::string error_of(ncclResult_t result, ncclComm_t comm = nullptr) {
  return result == ncclSuccess ? "" : std::to_string(result) + ": " + ncclGetLastError(comm);
}

/// Runs `program` on each of `n` threads.
inline void on_threads(int n, const std::function<void(int)>& program) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back([&program, i] { program(i); });
  for (std::thread& thread : threads) thread.join();
}

/// Returns a configuration of 2.32 in which nothing is set.
inline ncclConfig_t config() {
  ncclConfig_t all = nccl::undefined_config();
  all.version = 23203;
  return all;
}

/// Runs `program` on the ranks of a communicator, and destroys it.
inline void run(int n, const std::function<void(Rank&)>& program) {
  ncclUniqueId id;
  ASSERT_EQ(error_of(ncclGetUniqueId(&id)), "");
  on_threads(n, [&](int i) {
    Rank rank{nullptr, i, n};
    ASSERT_EQ(error_of(ncclCommInitRank(&rank.comm, n, id, i)), "");
    program(rank);
    EXPECT_EQ(error_of(ncclCommDestroy(rank.comm)), "");
  });
}

}  // namespace tandem::nccl_test
