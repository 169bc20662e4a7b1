#include "gpu/operators_bench_torch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

extern char** environ;

namespace tandem::bench {

namespace {

using Clock = std::chrono::steady_clock;

// An import of PyTorch takes 10 s, its first collectives some more.
constexpr double kStartSeconds = 60, kAnswerSeconds = 20, kEndSeconds = 5;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

TorchPeer::TorchPeer(const std::string& script, int gpus) {
  ::signal(SIGPIPE, SIG_IGN);  // a script that has ended is an error of send()
  start(script, gpus);
}

TorchPeer::~TorchPeer() { end(); }

void TorchPeer::start(const std::string& script, int gpus) {
  std::array<int, 2> in{}, out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0)
    return fail(fmt::format("pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::string python = "python3", file = script, ranks = std::to_string(gpus);
  std::array<char*, 4> arguments{python.data(), file.data(), ranks.data(), nullptr};
  const int error = ::posix_spawnp(&pid_, "python3", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (error != 0) {
    pid_ = -1;
    fail(fmt::format("python3: {}", std::strerror(error)));
  }
}

bool TorchPeer::is_ready() {
  if (!failure_.empty()) return false;
  if (!version_.empty()) return true;
  const auto line = receive(kStartSeconds);
  if (!line) return false;
  const auto answer = nlohmann::json::parse(*line, nullptr, false);
  if (answer.is_object()) version_ = answer.value("torch", "");
  if (version_.empty()) fail(fmt::format("its first line was '{}'", *line));
  return !version_.empty();
}

bool TorchPeer::prepare(Operator op, Size m, Size n, Size k, int calls) {
  if (!is_ready() || !send(fmt::format("prepare {} {} {} {} {}\n", name(op), m, n, k, calls))) return false;
  const auto line = receive(kAnswerSeconds);
  if (!line) return false;
  const auto answer = nlohmann::json::parse(*line, nullptr, false);
  const bool right = answer.is_object() && answer.value("right", false);
  if (!right)
    std::printf("without PyTorch: %s of %lldx%lldx%lld: %s\n", name(op), static_cast<long long>(m),
                static_cast<long long>(n), static_cast<long long>(k), line->c_str());
  return right;
}

std::optional<TorchTime> TorchPeer::turn() {
  if (!send("turn\n")) return {};
  const auto line = receive(kAnswerSeconds);
  if (!line) return {};
  const auto answer = nlohmann::json::parse(*line, nullptr, false);
  if (answer.is_object() && answer.contains("us")) return TorchTime{answer["us"], answer["matmul_us"]};
  fail(fmt::format("a turn ended with {}", *line));
  return {};
}

bool TorchPeer::send(const std::string& line) {
  if (!failure_.empty()) return false;
  if (::write(to_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return true;
  fail(fmt::format("it takes no commands: {}", std::strerror(errno)));
  return false;
}

std::optional<std::string> TorchPeer::receive(double seconds) {
  const auto begin = Clock::now();
  for (;;) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      const std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    const double left = seconds - seconds_since(begin);
    pollfd waiting{from_, POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left * 1000) + 1) == 0) {
      fail(fmt::format("no answer within {} s", seconds));
      return {};
    }
    std::array<char, 4096> chunk;
    const ssize_t got = ::read(from_, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      fail("it ended");
      return {};
    }
    pending_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

void TorchPeer::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  end();
}

/// The script ends where its input does.
void TorchPeer::end() {
  for (int* fd : {&to_, &from_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
  if (pid_ <= 0) return;
  int status = 0;
  const auto begin = Clock::now();
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (seconds_since(begin) > kEndSeconds) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  pid_ = -1;
  if (failure_.empty()) return;
  if (WIFEXITED(status)) failure_ += fmt::format("; its exit code is {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) failure_ += fmt::format("; signal {} ended it", WTERMSIG(status));
}

}  // namespace tandem::bench
