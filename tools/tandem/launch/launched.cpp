#include "tools/tandem/launch/launched.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include "tandem/error.h"

namespace tandem::cli {

namespace {

using bootstrap::Fd;

struct Pipe {
  Fd read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw RuntimeFailure(
        fmt::format("launch: a pipe for the output of a PE: {}",
                    errno == EMFILE ? "too many open files (ulimit -n)" : std::generic_category().message(errno)));
  return {Fd(ends[0]), Fd(ends[1])};
}

/// Runs in the child and does not return. A failed exec reports its error through `complaint`.
[[noreturn]] void become(std::vector<std::string> program, std::vector<std::string> variables, const Pipe& out,
                         const Pipe& err, const Pipe& complaint, pid_t launcher) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(127);  // the launcher has ended already
  ::setpgid(0, 0);
  for (const int number : {SIGPIPE, SIGTTOU}) ::signal(number, SIG_DFL);  // the launcher ignores them
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(out.write.get(), STDOUT_FILENO);
  ::dup2(err.write.get(), STDERR_FILENO);
  for (std::string& variable : variables) ::putenv(variable.data());
  std::vector<char*> argv;
  argv.reserve(program.size() + 1);
  for (std::string& word : program) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(complaint.write.get(), &error, sizeof(error));
  ::_exit(127);
}

}  // namespace

bool PrefixedOutput::pass_on() {
  std::array<char, 65536> chunk;
  const ssize_t got = ::read(pipe_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return finish();
  const std::size_t before = pending_.size();
  pending_.append(chunk.data(), static_cast<std::size_t>(got));
  return print_lines(before);
}

/// `first_new`: no byte before it ends a line.
bool PrefixedOutput::print_lines(std::size_t first_new) {
  constexpr std::size_t longest = 65536;
  std::size_t begin = 0;
  bool is_written = true;
  for (std::size_t end; (end = pending_.find('\n', std::max(begin, first_new))) != std::string::npos; begin = end + 1)
    is_written = print(std::string_view(pending_).substr(begin, end - begin)) && is_written;
  pending_.erase(0, begin);
  if (pending_.size() >= longest) {
    is_written = print(pending_) && is_written;
    pending_.clear();
  }
  return std::fflush(to_) == 0 && is_written;
}

bool PrefixedOutput::print(std::string_view line) {
  const std::string text = fmt::format("{}{}\n", prefix_, line);
  return std::fwrite(text.data(), 1, text.size(), to_) == text.size();
}

bool PrefixedOutput::finish() {
  pipe_.reset();
  if (pending_.empty()) return true;
  const bool is_written = print(pending_);
  pending_.clear();
  return std::fflush(to_) == 0 && is_written;
}

void Launched::signal(int number) const {
  if (pid > 0) ::kill(-pid, number);
}

Launched start_process(const std::vector<std::string>& program, const std::vector<std::string>& variables, int pe) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe complaint = make_pipe();
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw RuntimeFailure(fmt::format("fork: {}", std::generic_category().message(errno)));
  if (pid == 0) become(program, variables, out, err, complaint, launcher);
  complaint.write.reset();
  int error = 0;
  if (::read(complaint.read.get(), &error, sizeof(error)) == sizeof(error)) {
    ::waitpid(pid, nullptr, 0);
    throw InvalidArgument(fmt::format("launch: {}: {}", program[0], std::generic_category().message(error)));
  }
  const std::string prefix = fmt::format("[{}] ", pe);
  Launched launched;
  launched.pid = pid;
  launched.outputs.emplace_back(std::move(out.read), prefix, stdout);
  launched.outputs.emplace_back(std::move(err.read), prefix, stderr);
  return launched;
}

}  // namespace tandem::cli
