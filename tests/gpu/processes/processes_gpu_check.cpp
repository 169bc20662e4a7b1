// Checks worlds of processes on the GPUs that it finds: starts itself once for each PE. Prints what fails, and "N
// passed, N failed"; exit code 1 if anything failed.
//
// Starting processes on GPUs takes longer than most parts. Parts therefore share processes, one after the other. After
// a part that fails new processes are started.
//
//   processes_gpu_check [PES [PART]]           PEs (default: the GPUs); one part alone
//
// With TANDEM_SHARE_GPU=1 there may be more PEs than GPUs.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/processes/process_peer.h"
#include "tandem/cuda.h"

namespace tandem::test {

namespace {

struct Part {
  const char* name;
  bool needs_peers = false;
  bool alone = false;    ///< in processes of its own
  bool is_long = false;  ///< has thousands of calls, which take minutes where processes take turns on a GPU
};

constexpr Part kParts[] = {
    {"begin"},
    {"collectives"},
    {"replays"},
    {"barrier"},
    {"two_worlds"},
    {"again", false, false, true},
    {"missing", true},
    {"mismatch", true},
    {"other_counts", true},
    {"cost_of_check", false, false, true},
    {"timeline"},
    {"heap"},
    {"other_counts_on_gpus", true},
    {"exhausted"},
    {"failed"},
    {"untold", true},
    {"fabric", false, true},
    {"killed", false, true},
    {"killed_host", false, true},
    {"shared_gpu", true, true},
};

struct Peer {
  pid_t pid = -1;
  int output = -1;
};

Peer start(const char* program, const std::vector<std::string>& parts, int pe, int pes, const std::string& next_id) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
    set("RANK", std::to_string(pe));
    set("LOCAL_RANK", std::to_string(pe));  // modulo the GPUs, where worlds take it
    set("WORLD_SIZE", std::to_string(pes));
    set("LOCAL_WORLD_SIZE", std::to_string(pes));
    set("MASTER_ADDR", "127.0.0.1");
    set("MASTER_PORT", "1");
    set("TANDEM_RUN_ID", std::to_string(getppid()) + parts.front());
    set("NEXT_ID", next_id);
    std::vector<std::string> words{program, "--peer"};
    words.insert(words.end(), parts.begin(), parts.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(program, arguments.data());
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

/// How many parts a PE has come through, by what it printed.
std::size_t count_passed(const std::string& output) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = output.find(kPassed, at)) != std::string::npos; ++at) ++count;
  return count;
}

/// How many of the parts, one after the other in the same processes, all PEs have come through.
std::size_t run_parts(const char* program, const std::vector<std::string>& parts, int pes) {
  const UniqueId next = UniqueId::create();
  std::vector<Peer> peers;
  for (int pe = 0; pe < pes; ++pe) peers.push_back(start(program, parts, pe, pes, next.text()));
  const std::string& only = parts.front();
  std::size_t all_passed = parts.size();
  for (int pe = 0; pe < pes; ++pe) {
    const std::string output = read_all(peers[static_cast<std::size_t>(pe)].output);
    int status = 0;
    waitpid(peers[static_cast<std::size_t>(pe)].pid, &status, 0);
    const bool is_victim = (only == "killed" && pe == pes - 1) || (only == "killed_host" && pe == 0);
    const bool right =
        is_victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const std::size_t passed = is_victim && right ? parts.size() : std::min(count_passed(output), parts.size());
    std::printf("PE %d:\n%s", pe, output.c_str());
    if (!right) std::printf("PE %d of %d, from %s on: status 0x%x\n", pe, pes, only.c_str(), status);
    // A process that ends badly after its last part has failed in that part.
    all_passed = std::min(all_passed, right ? passed : std::min(passed, parts.size() - 1));
  }
  std::fflush(stdout);
  return all_passed;
}

/// In a process of its own: a driver that was started does not survive a fork.
int count_devices(const char* program) {
  const Peer peer = start(program, {"devices"}, 0, 1, "");
  const int devices = std::atoi(read_all(peer.output).c_str());
  waitpid(peer.pid, nullptr, 0);
  return devices;
}

int check_all(const char* program, int pes, const std::string& only) {
  const int gpus = count_devices(program);
  if (pes == 0) pes = gpus;
  const bool shares = std::getenv("TANDEM_SHARE_GPU") != nullptr;
  if (gpus == 0 || (pes > gpus && !shares)) {
    std::printf("%d GPUs for %d processes: each needs one of its own, unless TANDEM_SHARE_GPU is 1\n", gpus, pes);
    return 2;
  }
  std::vector<std::vector<std::string>> launches(1);
  for (const Part& part : kParts) {
    const bool is_left_out = (part.needs_peers && pes == 1) || (part.is_long && pes > gpus);
    if (!only.empty() ? part.name != only : is_left_out) continue;
    if (part.alone)
      launches.push_back({part.name});
    else
      launches.front().emplace_back(part.name);
  }
  int passed = 0;
  int failed = 0;
  for (std::vector<std::string>& parts : launches)
    while (!parts.empty()) {
      const auto begin = std::chrono::steady_clock::now();
      const std::size_t done = run_parts(program, parts, pes);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      for (std::size_t i = 0; i < done; ++i) std::printf("%s on %d PEs: passed\n", parts[i].c_str(), pes);
      passed += static_cast<int>(done);
      if (done < parts.size()) {
        ++failed;
        std::printf("FAILED %s on %d PEs\n", parts[done].c_str(), pes);
      }
      std::printf("%.2f s for these processes\n", took.count());
      std::fflush(stdout);
      parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(done + 1, parts.size())));
    }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--peer" && argc > 2) return tandem::test::run_peer({argv + 2, argv + argc});
  return tandem::test::check_all("/proc/self/exe", std::atoi(first.c_str()), argc > 2 ? argv[2] : "");
}
