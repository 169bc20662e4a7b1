#include <algorithm>
#include <filesystem>
#include <iterator>

#include "gpu/memory/heap_program.h"
#include "gpu/processes/process_peer.h"
#include "tandem/barrier.h"
#include "tandem/timeline.h"

namespace tandem::test {

namespace {

std::vector<AlgorithmInfo> algorithms() {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms())
    if (info.name != "multimem") list.push_back(info);
  return list;
}

/// How long a world takes to make, with and without the test of all links.
void begin() {
  for (const bool tested : {true, false, true, false}) {
    CudaOptions options = small_world();
    options.self_test = tested;
    const double at = now_ms();
    const auto process = std::make_unique<CudaProcess>(placement_from_environment(), options);
    const double made = now_ms();
    if (process->world().pe() == 0)
      std::printf("a world %s: %.1f ms to make\n", tested ? "with self-test" : "without", made - at);
  }
}

void collectives() {
  for (const AlgorithmInfo& info : algorithms()) {
    CudaProcess process(placement_from_environment(), small_world());
    World& world = process.world();
    for (const DType type : {DType::kBF16, DType::kF32, DType::kI64})
      for (const Size count : {Size{1}, Size{1003}, Size{200011}}) {
        RoundsCase c{info, type, ReduceOp::kSum, count};
        c.root = count == 1003 ? world.num_pes() - 1 : 0;
        check_case(world, c);
      }
  }
}

void replays() {
  for (const AlgorithmInfo& info : algorithms()) {
    CudaProcess process(placement_from_environment(), small_world());
    RoundsCase c{info, DType::kBF16, ReduceOp::kSum, 4099};
    c.graph = true;
    c.rounds = 20;
    check_case(process.world(), c);
  }
}

/// Whatever a stream wrote to a peer before the barrier, the peer's stream finds after it.
void barrier() {
  CudaProcess process(placement_from_environment(), small_world());
  World& world = process.world();
  const TeamBarrier together = make_team_barrier(world, world.team());
  const Symm<int> words = world.heap().allocate<int>(world.num_pes(), "words");
  const Symm<int> own = world.heap().allocate<int>(1, "own");
  const Symm<int> found = world.heap().allocate<int>(world.num_pes(), "found");
  Stream stream = world.make_stream("main");
  for (int round = 1; round <= 200; ++round) {
    world.copy_in(own.local(), &round, sizeof(int));
    for (int pe = 0; pe < world.num_pes(); ++pe) stream.copy_async(words.on(pe) + world.pe(), own.local(), sizeof(int));
    barrier_on(stream, together, world.team());
    stream.copy_async(found.local(), words.local(), world.num_pes() * Size{sizeof(int)});
    barrier_on(stream, together, world.team());
    stream.synchronize();
    std::vector<int> host(static_cast<std::size_t>(world.num_pes()));
    world.copy_out(host.data(), found.local(), world.num_pes() * Size{sizeof(int)});
    for (const int value : host) expect(value == round, fmt::format("{} after the barrier, not {}", round, value));
  }
}

void two_worlds() {
  CudaProcess first(placement_from_environment(), small_world());
  CudaProcess second(placement_from_environment(), small_world());
  for (int i = 0; i < 5; ++i)
    for (CudaProcess* const process : {&first, &second}) {
      check_case(process->world(), {collective_algorithms().front(), DType::kF32, ReduceOp::kSum, 100003 + i});
    }
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  cuda_check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

/// 100 worlds, one after the other: what they took is given back.
void again() {
  // Stays, so that all can wait until the last world of every process is gone: a peer's mapping keeps this PE's memory.
  CudaProcess outer(placement_from_environment(), small_world());
  const auto once = [] {
    CudaProcess process(placement_from_environment(), small_world());
    check_case(process.world(), {collective_algorithms().front()});
  };
  for (int i = 0; i < 3; ++i) once();
  outer.world().barrier();
  const auto fds = open_descriptors();
  const auto free = free_memory();
  const std::size_t slack = std::size_t{64} << 20;  // less than one world's
  const double at = now_ms();
  for (int i = 0; i < 100; ++i) once();
  outer.world().barrier();
  std::printf("a world: %.1f ms; descriptors %td then %td, free memory %zu then %zu MiB\n", (now_ms() - at) / 100, fds,
              open_descriptors(), free >> 20, free_memory() >> 20);
  expect(open_descriptors() <= fds + 8, "no leaked descriptors");
  expect(free_memory() + slack >= free, "no leaked memory");
}

/// How long the host takes for one of some calls that the GPU is still busy with, microseconds.
double host_us(World& world, Stream& stream, const std::function<void()>& call) {
  constexpr int calls = 200;
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    world.barrier();
    const double at = now_ms();
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, (now_ms() - at) * 1000 / calls);
    stream.synchronize();
  }
  return best;
}

struct Compared {
  const char* name;
  bool by_hosts;
  bool by_gpus;
};

/// The cost of comparing calls: for a graph of 20 calls, and in host time for plain calls.
void cost_of_check() {
  for (const Compared& compared : {Compared{"not compared", false, false},
                                   {"compared by hosts", true, false},
                                   {"compared by GPUs", false, true}}) {
    CudaOptions options = small_world();
    options.compare_calls = compared.by_hosts;
    options.check_calls = compared.by_gpus;
    CudaProcess process(placement_from_environment(), options);
    World& world = process.world();
    const auto plan = make_collective(world, Collective::kAllReduce, {.type = DType::kBF16, .max_count = 8192});
    const Symm<std::byte> data = world.heap().allocate<std::byte>(16384, "data");
    Stream stream = world.make_stream("main");
    Graph graph(static_cast<cudaStream_t>(stream.native()), [&] {
      for (int i = 0; i < 20; ++i) plan->run(stream, data, data, 8192);
    });
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      world.barrier();
      const double at = now_ms();
      graph.launch();
      stream.synchronize();
      best = std::min(best, now_ms() - at);
    }
    const double host = host_us(world, stream, [&] { plan->run(stream, data, data, 8192); });
    if (world.pe() == 0)
      std::printf("16 KB all-reduce, calls %s: %.2f us a call in a graph; the host's part of a plain call %.2f us\n",
                  compared.name, best * 1000 / 20, host);
  }
}

/// One timeline of all PEs, whose clocks agree: PE 0 has it, with work and signals of all.
void timeline() {
  CudaOptions options = small_world();
  options.record.on = true;
  options.record.bytes = Size{64} << 20;
  CudaProcess process(placement_from_environment(), options);
  World& world = process.world();
  const auto plan = make_collective(world, Collective::kAllReduce,
                                    {.type = DType::kBF16, .max_count = 100'000, .algorithm = "two_shot"});
  const Symm<std::byte> data = world.heap().allocate<std::byte>(200'000, "data");
  Stream stream = world.make_stream("main");
  constexpr int calls = 10;
  for (int i = 0; i < calls; ++i) {
    process.record(i % 2 == 0);
    plan->run(stream, data, data, 100'000);
  }
  stream.synchronize();
  const trace::Timeline& seen = process.timeline();
  if (world.pe() != 0) return expect(seen.spans.empty(), "a timeline on PE 0 alone");
  const ProfileInfo& info = process.profile_info();
  std::vector<int> kernels(static_cast<std::size_t>(world.num_pes()));
  for (const trace::Span& span : seen.spans)
    if (span.kind == trace::SpanKind::kKernel)
      ++kernels[static_cast<std::size_t>(seen.lanes[static_cast<std::size_t>(span.lane)].pe)];
  for (int pe = 0; pe < world.num_pes(); ++pe) {
    const auto& clock = info.clocks.at(static_cast<std::size_t>(pe));
    std::printf("PE %d: %d blocks; clock %+lld ns, error %.0f ns, at most %.0f ns\n", pe,
                kernels[static_cast<std::size_t>(pe)], static_cast<long long>(clock.offset_ns), clock.error_ns,
                clock.bound_ns);
    expect(kernels[static_cast<std::size_t>(pe)] > 0, "work of every PE");
    const bool has_own_clock = pe % cuda_devices() != 0;
    expect(has_own_clock ? clock.bound_ns > 0 && clock.bound_ns < 5000 : clock.bound_ns == 0,
           "clocks that were compared");
  }
  expect(kernels == std::vector<int>(kernels.size(), kernels[0]), "equally many blocks on all PEs");
  double least = 1e9;
  int between = 0;
  for (const auto& release : info.releases) {
    if (release.from == release.to) continue;
    ++between;
    least = std::min(least, release.us);
  }
  std::printf("%d signals ended waits of other PEs, the fastest after %.2f us; %lld operations, %lld waits unmatched\n",
              between, least, static_cast<long long>(info.operations), static_cast<long long>(info.unmatched_waits));
  expect(world.num_pes() == 1 || between > 0, "signals between PEs");
  expect(info.lost_work == 0 && info.lost_operations == 0, "nothing lost");
}

/// Memory that is handed over by fabric handles, where this machine lets processes make them; else what it says.
void fabric() {
  setenv("TANDEM_HANDLES", "fabric", 1);
  std::unique_ptr<CudaProcess> process;
  try {
    process = std::make_unique<CudaProcess>(placement_from_environment(), growing_world());
  } catch (const Unsupported& error) {
    expect(contains(error.what(), "by file descriptors (PE 0: TANDEM_HANDLES is fabric), nor by fabric handles ("),
           std::string("what each way lacks, not: ") + error.what());
    std::printf("%s\n", error.what());
    return;
  }
  std::printf("fabric handles\n");
  check_heap(process->world());
  check_case(process->world(), {collective_algorithms().front()});
}

struct Work {
  const char* part;
  void (*run)();
};

constexpr Work kWork[] = {
    {"devices", [] { std::printf("%d\n", cuda_devices()); }},
    {"begin", begin},
    {"collectives", collectives},
    {"replays", replays},
    {"barrier", barrier},
    {"two_worlds", two_worlds},
    {"again", again},
    {"missing", missing_call},
    {"mismatch", other_plans},
    {"other_counts", [] { other_counts(false); }},
    {"other_counts_on_gpus", [] { other_counts(true); }},
    {"shared_gpu", shared_gpu},
    {"cost_of_check", cost_of_check},
    {"timeline", timeline},
    {"fabric", fabric},
    {"heap", [] { check_heap(CudaProcess(placement_from_environment(), growing_world()).world()); }},
    {"exhausted", exhausted_heap},
    {"failed", failed_program},
    {"untold", unreported_end},
    {"killed", [] { killed_peer(false); }},
    {"killed_host", [] { killed_peer(true); }},
};

}  // namespace

int run_peer(const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    const auto* const work =
        std::find_if(std::begin(kWork), std::end(kWork), [&](const Work& one) { return part == one.part; });
    if (work == std::end(kWork)) return 2;
    const double at = now_ms();
    try {
      work->run();
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", part.c_str(), error.what());
      return 1;
    }
    std::printf("%s%s, %.2f s\n", kPassed, part.c_str(), (now_ms() - at) / 1000);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace tandem::test
