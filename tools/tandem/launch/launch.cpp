#include "tools/tandem/launch/launch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/protocol/deadline.h"
#include "bootstrap/protocol/mac.h"
#include "bootstrap/protocol/socket.h"
#include "tandem/error.h"
#include "tools/tandem/launch/descendants.h"
#include "tools/tandem/launch/launched.h"
#include "tools/tandem/launch/local_rank.h"
#include "tools/tandem/launch/nccl_variables.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"

namespace tandem::cli {

namespace {

/// Seconds that processes have to end after a request.
constexpr double kGrace = 5;

/// Signals as a descriptor for poll, beside the outputs.
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
  /// Returns the next signal, or 0 if there is none.
  int next() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_{};
  bootstrap::Fd fd_;
};

/// Its destructor ends all descendants of this process.
class Family {
 public:
  Family() { adopt_descendants(); }
  ~Family() { end_descendants(); }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
};

/// Returns whether the end of a terminal or a connection ends the job. Under `nohup` it does not.
bool ends_at_hangup() {
  struct sigaction action {};
  return ::sigaction(SIGHUP, nullptr, &action) != 0 || action.sa_handler != SIG_IGN;
}

/// Returns the variables by which the PEs of one host meet.
std::vector<std::string> variables_of_host() {
  // The port is free now. As with every launcher, another process may take it before the program does.
  const int port = bootstrap::port_of(bootstrap::listen_tcp("127.0.0.1"));
  return {"MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port),
          "TANDEM_RUN_ID=" + bootstrap::hex(bootstrap::random_key())};
}

/// The PEs of a job and their outputs.
class Job {
 public:
  Job(const LaunchArguments& arguments, const Signals& signals)
      : signals_(signals), first_(arguments.node_rank * (arguments.pes / arguments.nodes)) {
    std::vector<std::string> common = arguments.nodes > 1 ? variables_of_hosts(arguments) : variables_of_host();
    if (arguments.with_nccl)
      for (std::string& variable : nccl_variables()) common.push_back(std::move(variable));
    const int local_pes = arguments.pes / arguments.nodes;
    const int gpus = shared_gpus();
    for (int local_pe = 0; local_pe < local_pes; ++local_pe) {
      std::vector<std::string> variables{
          fmt::format("RANK={}", first_ + local_pe),         fmt::format("LOCAL_RANK={}", local_rank(local_pe, gpus)),
          fmt::format("WORLD_SIZE={}", arguments.pes),       fmt::format("LOCAL_WORLD_SIZE={}", local_pes),
          fmt::format("GROUP_RANK={}", arguments.node_rank), fmt::format("GROUP_WORLD_SIZE={}", arguments.nodes)};
      variables.insert(variables.end(), common.begin(), common.end());
      processes_.push_back(start_process(arguments.program, variables, first_ + local_pe));
    }
  }

  int run() {
    while (is_running()) {
      std::vector<pollfd> polled{{signals_.fd(), POLLIN, 0}};
      // No events are requested, because the error of a pipe without a reader is always reported.
      for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) polled.push_back({lost_ || !watches_ ? -1 : fd, 0, 0});
      for (const Launched& process : processes_)
        for (const PrefixedOutput& output : process.outputs) polled.push_back({output.fd(), POLLIN, 0});
      const int timeout = end_ ? end_->milliseconds() : -1;
      if (::poll(polled.data(), polled.size(), timeout) < 0 && errno != EINTR) bootstrap::throw_errno("poll");
      if (polled[1].revents != 0 || polled[2].revents != 0) lose();
      pass_on(polled);
      while (const int number = signals_.next()) take(number);
      if (end_ && end_->passed()) end_all(SIGKILL);
    }
    if (lost_) throw RuntimeFailure("launch: writing the output of the PEs failed, so they were ended");
    return code_;
  }

 private:
  bool is_running() const {
    return std::any_of(processes_.begin(), processes_.end(), [](const Launched& one) { return one.pid > 0; });
  }

  void pass_on(const std::vector<pollfd>& polled) {
    std::size_t i = kOwn;
    for (Launched& process : processes_)
      for (PrefixedOutput& output : process.outputs)
        if (polled[i++].revents != 0 && !output.pass_on()) lose();
  }

  /// Ends the PEs, because their output is not read.
  void lose() {
    if (std::exchange(lost_, true)) return;
    code_ = kFailure;
    end_all(SIGTERM);
  }

  void take(int number) {
    if (number == SIGCHLD) return reap();
    if (code_ == 0) code_ = 128 + number;
    end_all(number);
  }

  /// Requests the end, and kills after a while.
  void end_all(int number) {
    if (!end_) end_.emplace(kGrace);
    for (const Launched& process : processes_) process.signal(number);
  }

  /// Reaps all processes that have ended, adopted ones included.
  void reap() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found =
          std::find_if(processes_.begin(), processes_.end(), [&](const Launched& one) { return one.pid == pid; });
      if (found != processes_.end()) has_ended(*found, first_ + static_cast<int>(found - processes_.begin()), status);
    }
  }

  void has_ended(Launched& process, int pe, int status) {
    drain(process);
    const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (failed) process.signal(SIGKILL);  // and everything it started
    process.pid = -1;
    if (!failed || code_ != 0) return;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    complain(fmt::format("PE {} {} {}; the others are ended", pe,
                         WIFEXITED(status) ? "failed with exit code" : "was ended by signal",
                         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
    end_all(SIGTERM);
  }

  /// Passes on its last output. Its children may hold its outputs open; that is not waited for.
  void drain(Launched& process) {
    for (PrefixedOutput& output : process.outputs) {
      constexpr int more_than_a_pipe_holds = 16;  // reads; its children may write without end
      for (int i = 0; i < more_than_a_pipe_holds && output.fd() >= 0; ++i) {
        pollfd one{output.fd(), POLLIN, 0};
        if (::poll(&one, 1, 0) <= 0) break;
        if (!output.pass_on()) lose();
      }
      if (!output.finish()) lose();
    }
  }

  static constexpr std::size_t kOwn = 3;  ///< entries of `polled` before those of the PEs

  const Signals& signals_;
  const int first_;  ///< the first PE of this host
  Family family_;
  std::vector<Launched> processes_;
  std::optional<bootstrap::Deadline> end_;
  int code_ = 0;
  bool watches_ = ends_at_hangup();
  bool lost_ = false;
};

/// The process that starts the PEs. It ends them where the one that the user started is killed.
int keep(const LaunchArguments& arguments, const Signals& signals, pid_t guard) {
  ::setpgid(0, 0);  // a terminal's signals come from the guard, once
  ::signal(SIGTTOU, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != guard) return kFailure;
  return Job(arguments, signals).run();
}

/// The process that the user started. It passes signals on, and ends the remaining processes if the keeper is killed.
int guard(pid_t keeper, const Signals& signals) {
  while (true) {
    pollfd polled{signals.fd(), POLLIN, 0};
    if (::poll(&polled, 1, -1) < 0 && errno != EINTR) bootstrap::throw_errno("poll");
    while (const int number = signals.next()) {
      if (number != SIGCHLD) ::kill(keeper, number);
      int status = 0;
      if (number != SIGCHLD || ::waitpid(keeper, &status, WNOHANG) != keeper) continue;
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      throw RuntimeFailure(fmt::format("launch was ended by signal {}", WTERMSIG(status)));
    }
  }
}

}  // namespace

int launch(const LaunchArguments& arguments) {
  ::signal(SIGPIPE, SIG_IGN);
  const Signals signals;
  const Family family;
  const pid_t own = ::getpid();
  const pid_t keeper = ::fork();
  if (keeper < 0) bootstrap::throw_errno("fork");
  return keeper == 0 ? keep(arguments, signals, own) : guard(keeper, signals);
}

}  // namespace tandem::cli
