// Worlds of processes, each of which is a host with a GPU.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "gpu/counted_check.h"
#include "gpu/processes/hosts_processes.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::test {

namespace {

using Clock = std::chrono::steady_clock;

struct Place {
  UniqueId id;
  int pe;
  int pes;
};

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

CudaOptions options_of(const Place& place) {
  CudaOptions options = checked_world();
  options.device = place.pe % cuda_devices();
  options.join_timeout_s = 30;
  return options;
}

/// Prints one check of this PE, and counts it.
void count(const Place& place, const std::string& what, Size wrong) {
  report(fmt::format("PE {}: {}", place.pe, what), wrong == 0 ? "" : fmt::format("{} wrong", wrong));
}

void check_streams(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options_of(place));
  count(place, "calls of a stream", stream_rounds(process.world(), false));
}

void check_captured(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options_of(place));
  count(place, "captured calls of a stream", stream_rounds(process.world(), true));
}

void check_collectives(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options_of(place));
  Stream stream = process.world().make_stream("main");
  for (const AlgorithmInfo& algorithm : algorithms_between_nodes(place.pes)) {
    Size wrong = 0;
    for (const RoundsCase& c : cases_between_nodes(algorithm, place.pes))
      wrong += dispatch(c.type, [&]<class T>() {
                 return CollectiveRounds<T>(process.world(), c, capture_graph).run(stream);
               }).wrong;
    count(place, fmt::format("{} {}", name(algorithm.collective), algorithm.name), wrong);
  }
}

/// 10,000 calls of each collective in replayed graphs, with data that changes.
void check_replays(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options_of(place));
  Stream stream = process.world().make_stream("main");
  std::vector<Collective> seen;
  for (const AlgorithmInfo& algorithm : algorithms_between_nodes(place.pes)) {
    if (std::count(seen.begin(), seen.end(), algorithm.collective) > 0) continue;
    seen.push_back(algorithm.collective);
    RoundsCase c;
    c.algorithm = algorithm;
    c.count = 1003;
    c.rounds = 10'000;
    c.graph = true;
    const auto begin = Clock::now();
    const Size wrong = CollectiveRounds<float>(process.world(), c, capture_graph).run(stream).wrong;
    count(place,
          fmt::format("10,000 replays of {} {}, {:.0f} s", name(algorithm.collective), algorithm.name,
                      us_since(begin) / 1e6),
          wrong);
    std::fflush(stdout);
  }
}

void check_operators(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options_of(place));
  Stream stream = process.world().make_stream("main");
  const OperatorMemory memory(process.world(), Size{1} << 20);
  for (const OperatorCase& c : operators_between_nodes(place.pes))
    count(place, describe(c), run_operator_case(process.world(), stream, memory, c));
}

/// Prints the time of a call among twenty, the median of seven rounds of the slowest PE. The size is the output's.
void print_times(const Place& place) {
  constexpr int kCalls = 20;
  CudaProcess process(place.id, place.pe, place.pes, options_of(place));
  World& world = process.world();
  Stream stream = world.make_stream("main");
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather})
    for (const Size bytes : {Size{1} << 10, Size{64} << 10, Size{1} << 20, Size{16} << 20}) {
      const Size elements = bytes / 2 / (collective == Collective::kAllGather ? place.pes : 1);
      const auto plan = make_collective(world, collective, {.type = DType::kBF16, .max_count = elements});
      const auto in = world.heap().allocate<std::byte>(elements * 2, "in");
      const auto out = world.heap().allocate<std::byte>(bytes, "out");
      std::vector<double> rounds;
      for (int round = 0; round < 8; ++round) {
        world.barrier();
        const auto begin = Clock::now();
        for (int i = 0; i < kCalls; ++i) plan->run(stream, in, out, elements);
        stream.synchronize();
        world.barrier();
        if (round > 0) rounds.push_back(us_since(begin) / kCalls);
      }
      std::sort(rounds.begin(), rounds.end());
      if (place.pe == 0)
        std::printf("tandem %s %lld bytes: %.1f us (%.1f to %.1f), %s\n", std::string(name(collective)).c_str(),
                    static_cast<long long>(bytes), rounds[3], rounds.front(), rounds.back(),
                    std::string(plan->algorithm()).c_str());
      std::fflush(stdout);
    }
}

/// The last PE is killed while the others' kernels wait for it. They get its name and host, and make a new world.
void check_killed_peer(const Place& place) {
  std::string error;
  {
    CudaProcess process(place.id, place.pe, place.pes, options_of(place));
    World& world = process.world();
    const auto plan = make_collective(world, Collective::kAllReduce, {.type = DType::kF32, .max_count = 100'000});
    const Symm<std::byte> data = world.heap().allocate<std::byte>(400'000, "data");
    Stream stream = world.make_stream("main");
    for (int i = 0; i < 10; ++i) plan->run(stream, data, data, 100'000);
    stream.synchronize();
    world.barrier();
    if (place.pe == place.pes - 1) {
      if (failed > 0) std::_Exit(1);  // its end is its report, and no other end passes
      std::raise(SIGKILL);
    }
    const auto begin = Clock::now();
    try {
      plan->run(stream, data, data, 100'000);
      stream.synchronize();
    } catch (const RuntimeFailure& failure) {
      error = failure.what();
    }
    std::printf("PE %d: after %.1f ms: %s\n", place.pe, us_since(begin) / 1000, error.c_str());
  }
  const std::string victim = fmt::format("PE {}", place.pes - 1);
  count(place, "a killed peer has its name in the error", error.find(victim) == std::string::npos ? 1 : 0);
  if (place.pe != 0) return;
  CudaProcess alone(UniqueId::create(), 0, 1, options_of({place.id, 0, 1}));
  Stream stream = alone.world().make_stream("main");
  count(place, "a new world after a killed peer",
        CollectiveRounds<float>(alone.world(), {collective_algorithms().front()}).run(stream).wrong);
}

struct Part {
  const char* name;
  void (*run)(const Place&);
};
constexpr Part kParts[] = {{"streams", check_streams},         {"captured", check_captured},
                           {"collectives", check_collectives}, {"operators", check_operators},
                           {"replays", check_replays},         {"times", print_times},
                           {"killed", check_killed_peer}};

/// A part that runs in a world of its own, by its number in kParts.
struct Run {
  std::size_t part;
  UniqueId id;
};

/// Returns the parts of those names, in the order of kParts; without names all.
std::vector<Run> runs_of(const std::vector<std::string>& names) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < std::size(kParts); ++i)
    if (names.empty() || std::count(names.begin(), names.end(), kParts[i].name) > 0)
      runs.push_back({i, UniqueId::create()});
  return runs;
}

/// Starts one host. Its output is this program's.
pid_t start(int host, int hosts, const std::vector<Run>& runs) {
  std::vector<std::string> words{"/proc/self/exe", "--host", std::to_string(host), std::to_string(hosts)};
  for (const Run& run : runs) {
    words.push_back(std::to_string(run.part));
    words.push_back(run.id.text());
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string name = std::string("host_") + static_cast<char>('a' + host);
  const pid_t child = fork();
  if (child != 0) return child;
  setenv("TANDEM_HOST", name.c_str(), 1);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

void check_processes(int hosts, const std::vector<std::string>& parts) {
  const std::vector<Run> runs = runs_of(parts);
  if (runs.empty()) return report("parts of processes", "no part has such a name");
  const bool kills = runs.back().part + 1 == std::size(kParts);
  std::vector<pid_t> all;
  for (int host = 0; host < hosts; ++host) all.push_back(start(host, hosts, runs));
  for (int host = 0; host < hosts; ++host) {
    int status = 0;
    waitpid(all[static_cast<std::size_t>(host)], &status, 0);
    const bool is_victim = kills && host == hosts - 1;
    const bool is_right =
        is_victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    report(fmt::format("process {} of {} hosts", host, hosts), is_right ? "" : fmt::format("status {:#x}", status));
  }
}

int run_host(std::span<char* const> words) {
  const int host = std::atoi(words[0]);
  const int hosts = std::atoi(words[1]);
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    const Part& part = kParts[std::min(static_cast<std::size_t>(std::atoi(words[i])), std::size(kParts) - 1)];
    const auto begin = Clock::now();
    try {
      part.run({UniqueId::from_text(words[i + 1]), host, hosts});
    } catch (const std::exception& error) {
      report(fmt::format("PE {}: {}", host, part.name), error.what());
    }
    if (host == 0) std::printf("%s: %.1f s\n", part.name, us_since(begin) / 1e6);
    std::fflush(stdout);
  }
  return finish();
}

}  // namespace tandem::test
