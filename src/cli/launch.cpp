#include "cli/launch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>

#include "bootstrap/deadline.h"
#include "bootstrap/seal.h"
#include "bootstrap/socket.h"
#include "cli/launched.h"
#include "tandem/error.h"

namespace tandem::cli {

namespace {

/// How long those that are asked to end may take.
constexpr double kGrace = 5;

/// Signals as something to wait for, beside the outputs.
class Signals {
 public:
  Signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    fd_ = bootstrap::Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Signals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }
  /// The next one; 0 where there is none.
  int next() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_{};
  bootstrap::Fd fd_;
};

class Job {
 public:
  explicit Job(const LaunchArguments& arguments) {
    // Free now; as with every launcher, somebody else might take it before the program does.
    const int port = bootstrap::port_of(bootstrap::listen_tcp("127.0.0.1"));
    std::string id;
    for (const std::byte byte : bootstrap::random_key()) id += fmt::format("{:02x}", static_cast<int>(byte));
    try {
      for (int pe = 0; pe < arguments.pes; ++pe)
        processes_.push_back(start_process(
            arguments.program,
            {fmt::format("RANK={}", pe), fmt::format("LOCAL_RANK={}", pe), fmt::format("WORLD_SIZE={}", arguments.pes),
             fmt::format("LOCAL_WORLD_SIZE={}", arguments.pes), "MASTER_ADDR=127.0.0.1",
             fmt::format("MASTER_PORT={}", port), "TANDEM_RUN_ID=" + id},
            pe));
    } catch (...) {
      for (const Launched& process : processes_) process.signal(SIGKILL);
      throw;
    }
  }

  int run() {
    while (is_running()) {
      std::vector<pollfd> polled{{signals_.fd(), POLLIN, 0}};
      for (const Launched& process : processes_)
        for (const PrefixedOutput& output : process.outputs) polled.push_back({output.fd(), POLLIN, 0});
      const int patience = end_ ? end_->milliseconds() : -1;
      if (::poll(polled.data(), polled.size(), patience) < 0 && errno != EINTR) bootstrap::throw_errno("poll");
      pass_on(polled);
      while (const int number = signals_.next()) take(number);
      if (end_ && end_->passed()) end_all(SIGKILL);
    }
    return code_;
  }

 private:
  bool is_running() const {
    return std::any_of(processes_.begin(), processes_.end(), [](const Launched& one) { return one.pid > 0; });
  }

  void pass_on(const std::vector<pollfd>& polled) {
    std::size_t i = 1;
    for (Launched& process : processes_)
      for (PrefixedOutput& output : process.outputs)
        if (polled[i++].revents != 0) output.pass_on();
  }

  void take(int number) {
    if (number == SIGCHLD) return reap();
    if (code_ == 0) code_ = 128 + number;
    end_all(number);
  }

  /// Asks, and after a while no longer asks.
  void end_all(int number) {
    if (!end_) end_.emplace(kGrace);
    for (const Launched& process : processes_) process.signal(number);
  }

  void reap() {
    for (std::size_t pe = 0; pe < processes_.size(); ++pe) {
      Launched& process = processes_[pe];
      int status = 0;
      if (process.pid <= 0 || ::waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
      drain(process);
      const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
      if (failed) process.signal(SIGKILL);  // whatever it started
      process.pid = -1;
      if (failed && code_ == 0) {
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        fmt::print(stderr, "tandem: PE {} {} {}; the others are ended\n", pe,
                   WIFEXITED(status) ? "failed with exit code" : "was ended by signal",
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        end_all(SIGTERM);
      }
    }
  }

  /// What it wrote last. What it started may hold its outputs open; nobody waits for that.
  static void drain(Launched& process) {
    for (PrefixedOutput& output : process.outputs) {
      for (pollfd one{output.fd(), POLLIN, 0}; output.fd() >= 0 && ::poll(&one, 1, 0) > 0; one.fd = output.fd())
        output.pass_on();
      output.finish();
    }
  }

  Signals signals_;
  std::vector<Launched> processes_;
  std::optional<bootstrap::Deadline> end_;
  int code_ = 0;
};

}  // namespace

int launch(const LaunchArguments& arguments) { return Job(arguments).run(); }

}  // namespace tandem::cli
