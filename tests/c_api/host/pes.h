#pragma once
/// Programs in C on CPUs: PEs as threads or as processes, with the shared library as it is installed.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tandem.h"

namespace tandem::c_test {

/// One PE of a program.
struct Peer {
  tandem_world* world = nullptr;
  int pe = 0;
  int n = 0;
};

/// "" where the call went well, else the text of its error.
inline std::string error_of(tandem_status status) {
  return status == TANDEM_SUCCESS ? "" : "status " + std::to_string(status) + ": " + tandem_last_error();
}

/// Runs a program as one PE of a world.
template <class Program>
void run_pe(const Program& program, const void* id, int pe, int pes, tandem_options options = {}) {
  options.device = TANDEM_HOST;
  options.staging_bytes = size_t{1} << 16;
  Peer peer{nullptr, pe, pes};
  ASSERT_EQ(error_of(tandem_world_create(&peer.world, id, pe, pes, &options)), "");
  EXPECT_EQ(tandem_device_of(peer.world), TANDEM_HOST);
  program(peer);
  EXPECT_EQ(error_of(tandem_world_destroy(peer.world)), "");
}

template <class Program>
void run(int pes, const Program& program, const tandem_options& options = {}) {
  std::vector<char> id(TANDEM_UNIQUE_ID_BYTES);
  ASSERT_EQ(error_of(tandem_unique_id_create(id.data(), nullptr)), "");
  std::vector<std::thread> threads;
  for (int pe = 0; pe < pes; ++pe) threads.emplace_back([&, pe] { run_pe(program, id.data(), pe, pes, options); });
  for (std::thread& thread : threads) thread.join();
}

/// Runs a program in a process for each PE. PE 0 hands its id to the others through a pipe.
template <class Program>
void run_processes(int pes, const Program& program) {
  int ids[2];
  ASSERT_EQ(::pipe(ids), 0);
  std::vector<pid_t> processes;
  for (int pe = 0; pe < pes; ++pe) {
    std::fflush(stdout);
    const pid_t process = ::fork();
    ASSERT_GE(process, 0);
    if (process > 0) {
      processes.push_back(process);
      continue;
    }
    std::vector<char> id(TANDEM_UNIQUE_ID_BYTES);
    if (pe == 0) {
      EXPECT_EQ(error_of(tandem_unique_id_create(id.data(), nullptr)), "");
      for (int other = 1; other < pes; ++other)
        EXPECT_EQ(::write(ids[1], id.data(), id.size()), TANDEM_UNIQUE_ID_BYTES);
    } else {
      EXPECT_EQ(::read(ids[0], id.data(), id.size()), TANDEM_UNIQUE_ID_BYTES);
    }
    run_pe(program, id.data(), pe, pes);
    std::fflush(stdout);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  for (const pid_t process : processes) {
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0) << "of process " << process;
  }
  ::close(ids[0]);
  ::close(ids[1]);
}

}  // namespace tandem::c_test
