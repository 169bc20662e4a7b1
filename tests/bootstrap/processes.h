#pragma once
/// Processes of a test, ended with it.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/protocol/deadline.h"
#include "bootstrap/protocol/fd.h"

namespace tandem::bootstrap::testing {

struct Ended {
  int code = -1;  ///< exit code; minus the number of the signal that ended it
  std::string output;
};

class Process {
 public:
  /// `variables`: NAME=VALUE, beside those of the test.
  Process(const std::string& program, std::vector<std::string> arguments, std::vector<std::string> variables = {}) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    output_ = Fd(ends[0]);
    const Fd other_end(ends[1]);
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(other_end.get(), STDOUT_FILENO);
    ::dup2(other_end.get(), STDERR_FILENO);
    for (std::string& variable : variables) ::putenv(variable.data());
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), output_(std::move(other.output_)) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(output_, other.output_);
    return *this;
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int output() const { return output_.get(); }
  pid_t id() const { return pid_; }
  /// Waits until it has printed something.
  void wait_for_output() {
    pollfd one{output_.get(), POLLIN, 0};
    if (::poll(&one, 1, 60000) != 1) throw std::runtime_error("a process that prints nothing");
  }

  /// Its end; killed where that never comes.
  Ended wait() {
    Ended ended;
    const Deadline deadline(600);
    std::array<char, 4096> chunk;
    for (;;) {
      pollfd one{output_.get(), POLLIN, 0};
      if (::poll(&one, 1, deadline.milliseconds()) <= 0) break;
      const ssize_t got = ::read(output_.get(), chunk.data(), chunk.size());
      if (got <= 0) break;
      ended.output.append(chunk.data(), static_cast<std::size_t>(got));
    }
    if (deadline.passed()) ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return ended;
  }

 private:
  pid_t pid_ = -1;
  Fd output_;
};

}  // namespace tandem::bootstrap::testing
