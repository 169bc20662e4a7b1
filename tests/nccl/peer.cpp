// One rank of a communicator, as a process: peer ID RANK RANKS DEED. It prints what happens, for processes_test.cpp.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bindings/nccl/abi.h"
#include "every_call.h"

namespace {

ncclUniqueId id_of(const std::string& hex) {
  ncclUniqueId id;
  for (std::size_t i = 0; i < sizeof(id.internal); ++i)
    id.internal[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return id;
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

ncclResult_t sum(ncclComm_t comm) {
  std::vector<int> data(1000, 1);
  const ncclResult_t result = ncclAllReduce(data.data(), data.data(), 1000, ncclInt32, ncclSum, comm, nullptr);
  if (result == ncclSuccess) say(fmt::format("sum {}", data[999]));
  if (result != ncclSuccess) say(fmt::format("failed {}: {}", static_cast<int>(result), ncclGetLastError(comm)));
  return result;
}

ncclResult_t state(ncclComm_t comm) {
  ncclResult_t now = ncclSuccess;
  ncclCommGetAsyncError(comm, &now);
  return now;
}

/// Waits until a call is reported as slow.
std::string complaint(ncclComm_t comm) {
  std::string text;
  while (text.find("has waited") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    text = ncclGetLastError(comm);
  }
  return text;
}

/// Shrinks to all ranks but the last.
void shrink(ncclComm_t comm, int last) {
  ncclComm_t rest = nullptr;
  const ncclResult_t result = ncclCommShrink(comm, &last, 1, &rest, nullptr, kShrinkAbort);
  if (result != ncclSuccess) return say(std::string("no shrink: ") + ncclGetLastError(comm));
  sum(rest);
  ncclCommDestroy(rest);
}

/// Makes calls with a communicator that another library carries.
void use_carried(ncclComm_t comm) {
  ncclGroupStart();
  int data = 1, count = 0;
  ncclAllReduce(&data, &data, 1, ncclInt32, ncclSum, comm, nullptr);
  ncclGroupEnd();
  say(fmt::format("sum {}", data));
  ncclCommCount(comm, &count);
  say(fmt::format("count {}", count));
  say(fmt::format("state {}", static_cast<int>(state(comm))));
}

/// Gathers with a communicator that takes no SMs, and writes the log to the output.
int gather_by_copies(const ncclUniqueId& id, int ranks, int rank) {
  if (::dup2(STDOUT_FILENO, STDERR_FILENO) < 0) return 1;
  ncclConfig_t config = tandem::nccl::undefined_config();
  config.CTAPolicy = kCtaPolicyZero;
  ncclComm_t comm = nullptr;
  if (ncclCommInitRankConfig(&comm, ranks, id, rank, &config) != ncclSuccess) return 1;
  std::vector<int> all(static_cast<std::size_t>(ranks));
  ncclAllGather(&rank, all.data(), 1, ncclInt32, comm, nullptr);
  say(fmt::format("gathered {}", fmt::join(all, " ")));
  sum(comm);
  ncclCommDestroy(comm);
  return 0;
}

}  // namespace

int main(int, char** arguments) {
  const int rank = std::atoi(arguments[2]), ranks = std::atoi(arguments[3]);
  const std::string deed = arguments[4];
  const bool is_last = rank == ranks - 1;
  ncclComm_t comm = nullptr;
  // As PyTorch maps the NCCL of Python's packages.
  if (deed == "mapped" && ::dlopen(TANDEM_NCCL_STAND_IN, RTLD_LAZY | RTLD_LOCAL) == nullptr) return 1;
  if (deed == "abort_soon") {
    ncclConfig_t config = tandem::nccl::undefined_config();
    config.blocking = 0;
    if (ncclCommInitRankConfig(&comm, ranks, id_of(arguments[1]), rank, &config) != ncclInProgress) return 1;
    ncclCommAbort(comm);
    say("aborted");
    return 0;
  }
  if (deed == "copies") return gather_by_copies(id_of(arguments[1]), ranks, rank);
  if (const auto result = ncclCommInitRank(&comm, ranks, id_of(arguments[1]), rank); result != ncclSuccess) {
    say(fmt::format("no communicator: {}: {}", static_cast<int>(result), ncclGetLastError(nullptr)));
    return 1;
  }
  if (deed == "mapped" || deed == "carried") {
    use_carried(comm);
    ncclCommDestroy(comm);
    say("end");
    return 0;
  }
  sum(comm);
  if (deed == "late") {  // the last rank lets the others wait until the test lets it go on
    char end = 0;
    if (is_last && ::read(STDIN_FILENO, &end, 1) < 0) return 1;
    std::thread reader([&] {
      if (!is_last) say(complaint(comm));
    });
    sum(comm);
    reader.join();
  }
  if (deed == "kill") {  // the last rank dies, the others wait for it and go on without it
    if (is_last) ::kill(::getpid(), SIGKILL);
    sum(comm);
    say(fmt::format("state {}", static_cast<int>(state(comm))));
    shrink(comm, ranks - 1);
  }
  if (deed == "leave") {  // the last rank ends and no rank waits for it: no error until one calls
    char end = 0;
    if (::read(STDIN_FILENO, &end, 1) < 0) return 1;  // until the test lets it go on
    if (is_last) ::_exit(0);
    say(fmt::format("state {}", static_cast<int>(state(comm))));
    sum(comm);
  }
  if (deed == "every") say(tandem::nccl_test::EveryCall(comm, rank, ranks).run());
  if (deed == "exit") return 0;  // without a word to the others, which may still be in the call
  if (deed == "fork") {          // the child's end changes nothing
    const pid_t child = ::fork();
    if (child == 0) std::exit(0);
    int status = 0;
    ::waitpid(child, &status, 0);
    say(status == 0 ? "child ended" : "child failed");
    sum(comm);
  }
  if (deed == "abort") {
    if (is_last) {
      ncclCommAbort(comm);
      comm = nullptr;
    } else {
      sum(comm);
    }
  }
  ncclCommDestroy(comm);
  say("end");
  return 0;
}
