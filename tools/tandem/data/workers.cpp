#include "tools/tandem/data/workers.h"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "tandem/error.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

void write_all(int to, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(to, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ::_exit(1);  // the parent is gone
    at += static_cast<std::size_t>(n);
  }
}

/// A counter shared by processes: a free worker takes the next item of work.
class SharedCounter {
 public:
  SharedCounter() {
    void* const memory = ::mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw RuntimeFailure(fmt::format("memory of the workers: {}", std::strerror(errno)));
    value_ = new (memory) Value(0);
  }
  ~SharedCounter() { ::munmap(value_, sizeof(Value)); }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;

  std::size_t next() { return value_->fetch_add(1); }

 private:
  using Value = std::atomic<std::size_t>;
  static_assert(Value::is_always_lock_free);

  Value* value_;
};

/// The loop of a worker. It writes one line of JSON for each result.
[[noreturn]] void live(int to, SharedCounter& numbers, std::size_t count,
                       const std::function<Json(std::size_t)>& work) {
  // A simulation frees memory that the next one allocates again; it is not returned to the system in between.
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 64 << 20);
  for (std::size_t i = numbers.next(); i < count; i = numbers.next()) {
    Json line{{"number", i}};
    try {
      line["result"] = work(i);
    } catch (const std::exception& error) {
      line["error"] = error.what();
    }
    write_all(to, line.dump() + "\n");
  }
  // Skips buffers and destructors, which belong to the parent.
  ::_exit(0);
}

struct Worker {
  pid_t pid = -1;
  int from = -1;
  std::string pending;
};

Worker start(SharedCounter& numbers, std::size_t count, const std::function<Json(std::size_t)>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw RuntimeFailure(fmt::format("a worker's pipe: {}", std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw RuntimeFailure(fmt::format("a worker process: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    ::close(ends[0]);
    live(ends[1], numbers, count, work);
  }
  ::close(ends[1]);
  return {pid, ends[0], {}};
}

/// Reads the output of a worker. Returns false at its end.
bool take(Worker& worker, std::vector<Json>& results, std::string& error, std::size_t& taken) {
  char buffer[1 << 16];
  const ssize_t n = ::read(worker.from, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  worker.pending.append(buffer, static_cast<std::size_t>(n));
  std::size_t begin = 0;
  for (std::size_t end; (end = worker.pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Json line = Json::parse(worker.pending.substr(begin, end - begin));
    if (line.contains("error") && error.empty()) error = line["error"];
    if (line.contains("result")) results[line["number"].get<std::size_t>()] = std::move(line["result"]);
    ++taken;
  }
  worker.pending.erase(0, begin);
  return true;
}

}  // namespace

std::vector<Json> run_workers(std::size_t count, const std::function<Json(std::size_t)>& work,
                              const std::function<void(std::size_t)>& done) {
  const std::size_t most =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, std::max<std::size_t>(1, count));
  std::fflush(nullptr);
  std::vector<Json> results(count);
  std::vector<Worker> workers;
  workers.reserve(most);
  SharedCounter numbers;
  while (workers.size() < most) workers.push_back(start(numbers, count, work));
  std::string error;
  std::size_t taken = 0;
  for (std::size_t living = workers.size(); living > 0;) {
    std::vector<pollfd> polled;
    polled.reserve(workers.size());
    for (const Worker& worker : workers) polled.push_back({worker.from, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (workers[i].from < 0 || polled[i].revents == 0 || take(workers[i], results, error, taken)) continue;
      ::close(std::exchange(workers[i].from, -1));
      --living;
    }
    done(taken);
  }
  for (const Worker& worker : workers) {
    int status = 0;
    ::waitpid(worker.pid, &status, 0);
    if (error.empty() && status != 0) error = "a worker process ended before its work was done";
  }
  if (!error.empty()) throw RuntimeFailure(error);
  return results;
}

}  // namespace tandem::cli
