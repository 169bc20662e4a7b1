// Checks worlds of processes on the GPUs that it finds: starts itself once for each PE. Prints what fails, and "N
// passed, N failed"; exit code 1 if anything failed.
//
//   processes_gpu_check [PES [PART]]           PEs (default: the GPUs); one part alone
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/process_peer.h"
#include "tandem/cuda.h"

namespace tandem::test {

namespace {

struct Part {
  const char* name;
  bool needs_peers = false;
};

constexpr Part kParts[] = {
    {"begin"},
    {"collectives"},
    {"replays"},
    {"barrier"},
    {"two_worlds"},
    {"again"},
    {"missing", true},
    {"mismatch", true},
    {"other_counts", true},
    {"cost_of_check"},
    {"timeline"},
    {"fabric"},
    {"heap"},
    {"other_counts_on_gpus", true},
    {"exhausted"},
    {"failed"},
    {"killed"},
    {"killed_host"},
    {"shared_gpu", true},
};

struct Peer {
  pid_t pid = -1;
  int output = -1;
};

Peer start(const char* program, const std::string& part, int pe, int pes, const std::string& next_id) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
    set("RANK", std::to_string(pe));
    set("LOCAL_RANK", std::to_string(pe));
    set("WORLD_SIZE", std::to_string(pes));
    set("LOCAL_WORLD_SIZE", std::to_string(pes));
    set("MASTER_ADDR", "127.0.0.1");
    set("MASTER_PORT", "1");
    set("TANDEM_RUN_ID", std::to_string(getppid()) + part);
    set("NEXT_ID", next_id);
    execl(program, program, "--peer", part.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t got; (got = read(fd, chunk.data(), chunk.size())) > 0;)
    text.append(chunk.data(), static_cast<std::size_t>(got));
  close(fd);
  return text;
}

/// Whether all PEs ended as they should.
bool run_part(const char* program, const std::string& part, int pes) {
  const auto begin = std::chrono::steady_clock::now();
  const UniqueId next = UniqueId::create();
  std::vector<Peer> peers;
  for (int pe = 0; pe < pes; ++pe) peers.push_back(start(program, part, pe, pes, next.text()));
  bool well = true;
  for (int pe = 0; pe < pes; ++pe) {
    const std::string output = read_all(peers[static_cast<std::size_t>(pe)].output);
    int status = 0;
    waitpid(peers[static_cast<std::size_t>(pe)].pid, &status, 0);
    const bool is_victim = (part == "killed" && pe == pes - 1) || (part == "killed_host" && pe == 0);
    const bool right =
        is_victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    well = well && right;
    if (!output.empty()) std::printf("%s, PE %d: %s", part.c_str(), pe, output.c_str());
    if (!right) std::printf("FAILED %s on PE %d of %d, status 0x%x\n", part.c_str(), pe, pes, status);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s on %d PEs: %s, %.2f s\n", part.c_str(), pes, well ? "passed" : "failed", took.count());
  std::fflush(stdout);
  return well;
}

/// In a process of its own: a driver that was started does not survive a fork.
int count_devices(const char* program) {
  const Peer peer = start(program, "devices", 0, 1, "");
  const int devices = std::atoi(read_all(peer.output).c_str());
  waitpid(peer.pid, nullptr, 0);
  return devices;
}

int check_all(const char* program, int pes, const std::string& only) {
  const int gpus = count_devices(program);
  if (pes == 0) pes = gpus;
  if (gpus == 0 || pes > gpus) {
    std::printf("%d GPUs for %d processes: each needs one of its own\n", gpus, pes);
    return 2;
  }
  int passed = 0;
  int failed = 0;
  for (const Part& part : kParts) {
    if (!only.empty() ? part.name != only : part.needs_peers && pes == 1) continue;
    ++(run_part(program, part.name, pes) ? passed : failed);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--peer" && argc > 2) return tandem::test::run_peer(argv[2]);
  return tandem::test::check_all("/proc/self/exe", std::atoi(first.c_str()), argc > 2 ? argv[2] : "");
}
