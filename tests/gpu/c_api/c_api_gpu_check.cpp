// Checks the C API (tandem.h) on this machine's GPUs, as its users call it. It starts itself once for each PE, and once
// more for each part. It prints failures, and "N passed, N failed". The exit code is 1 if anything failed.
//
//   c_api_gpu_check [PES [PART]]    PEs (default: the GPUs; with TANDEM_SHARE_GPU=1 there may be more); one part alone
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/c_api/c_api_parts.h"

namespace {

using tandem::test::c_api_parts;
using tandem::test::CApiPart;

int run_peer(const std::string& name) {
  try {
    if (cudaSetDevice(std::atoi(std::getenv("LOCAL_RANK"))) != cudaSuccess) throw std::runtime_error("no such GPU");
    for (const CApiPart& part : c_api_parts())
      if (part.name == name) part.run();
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s, PE %s: %s\n", name.c_str(), std::getenv("RANK"), error.what());
    return 1;
  }
}

pid_t start(const std::string& part, int pe, int pes, int gpus) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const auto set = [](const char* variable, const std::string& value) { setenv(variable, value.c_str(), 1); };
  set("RANK", std::to_string(pe));
  set("LOCAL_RANK", std::to_string(pe % gpus));
  for (const char* const variable : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set(variable, std::to_string(pes));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", "1");
  set("TANDEM_RUN_ID", std::to_string(getppid()) + part);
  execl("/proc/self/exe", "c_api_gpu_check", "--peer", part.c_str(), nullptr);
  _exit(127);
}

int exit_code(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// In a process of its own: a driver that was started does not survive a fork.
int count_devices() {
  const pid_t pid = fork();
  if (pid != 0) return exit_code(pid);
  int devices = 0;
  _exit(cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--peer" && argc > 2) return run_peer(argv[2]);
  const int gpus = count_devices();
  if (gpus == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  const int pes = first.empty() ? gpus : std::atoi(first.c_str());
  const std::string only = argc > 2 ? argv[2] : "";
  int failed = 0;
  int passed = 0;
  for (const CApiPart& part : c_api_parts()) {
    if (!only.empty() && only != part.name) continue;
    const auto begin = std::chrono::steady_clock::now();
    std::vector<pid_t> peers;
    for (int pe = 0; pe < pes; ++pe) peers.push_back(start(part.name, pe, pes, gpus));
    bool is_well = true;
    for (const pid_t peer : peers) is_well = exit_code(peer) == 0 && is_well;
    ++(is_well ? passed : failed);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s on %d PEs: %s, %.2f s\n", part.name, pes, is_well ? "passed" : "failed", took.count());
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
