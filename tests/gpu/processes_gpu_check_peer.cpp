#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "gpu/collective_rounds.h"
#include "gpu/process_peer.h"
#include "tandem/barrier.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

CudaOptions small_world(double timeout_s = 10) {
  CudaOptions options;
  options.heap_bytes = Size{256} << 20;
  options.timeout_s = timeout_s;
  options.join_timeout_s = 30;
  return options;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The error of `work`, which has to end with one of type E.
template <class E, class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  }
  throw std::runtime_error("expected an error");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_case(World& world, const GpuCase& c) {
  const GpuResult result = dispatch(c.type, [&]<class T>() { return CollectiveRounds<T>(world, c).run(); });
  expect(result.wrong == 0, fmt::format("{}: none wrong, {} of {} are, first: {}", describe(c, world.num_pes()),
                                        result.wrong, result.checked, result.first_wrong));
}

std::vector<AlgorithmInfo> algorithms() {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms())
    if (info.name != "multimem") list.push_back(info);
  return list;
}

int blocks_for(int pes) { return pes > cuda_devices() ? 4 : 0; }

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
        GpuCase c{info, type, ReduceOp::kSum, count};
        c.root = count == 1003 ? world.num_pes() - 1 : 0;
        c.blocks = blocks_for(world.num_pes());
        check_case(world, c);
      }
  }
}

void replays() {
  for (const AlgorithmInfo& info : algorithms()) {
    CudaProcess process(placement_from_environment(), small_world());
    GpuCase c{info, DType::kBF16, ReduceOp::kSum, 4099};
    c.graph = true;
    c.rounds = 20;
    c.blocks = blocks_for(process.world().num_pes());
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
      GpuCase c{collective_algorithms().front(), DType::kF32, ReduceOp::kSum, 100003 + i};
      c.blocks = blocks_for(process->world().num_pes());
      check_case(process->world(), c);
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
  const auto once = [] {
    CudaProcess process(placement_from_environment(), small_world());
    GpuCase c{collective_algorithms().front(), DType::kF32, ReduceOp::kSum, 1003};
    c.blocks = blocks_for(process.world().num_pes());
    check_case(process.world(), c);
  };
  for (int i = 0; i < 3; ++i) once();
  const auto fds = open_descriptors();
  const auto free = free_memory();
  const double at = now_ms();
  for (int i = 0; i < 100; ++i) once();
  std::printf("a world: %.1f ms; descriptors %td then %td, free memory %zu then %zu MiB\n", (now_ms() - at) / 100, fds,
              open_descriptors(), free >> 20, free_memory() >> 20);
  expect(open_descriptors() <= fds + 8, "no leaked descriptors");
  expect(free_memory() + (std::size_t{256} << 20) > free, "no leaked memory");
}

CollectiveOptions two_shot(Size count) {
  CollectiveOptions options;
  options.max_count = count;
  options.algorithm = "two_shot";
  return options;
}

void join_anew() {
  CudaProcess process(placement_from_environment(), small_world());
  check_case(process.world(), {collective_algorithms().front()});
}

/// A call that is missing on one PE: all get an error that names PE and signal, and can make a new world.
void missing() {
  const double at = now_ms();
  {
    CudaProcess process(placement_from_environment(), small_world(1));
    World& world = process.world();
    const auto plan = make_collective(world, Collective::kAllReduce, two_shot(1000));
    const Symm<std::byte> data = world.heap().allocate<std::byte>(4000, "data");
    Stream stream = world.make_stream("main");
    const std::string error = error_of<Timeout>([&] {
      if (world.pe() != 0) plan->run(stream, data, data, 1000);
      stream.synchronize();
      world.barrier();
    });
    std::printf("after %.0f ms: %s\n", now_ms() - at, error.c_str());
    expect(contains(error, "gave up waiting for") && contains(error, "arrived"), "the signal's name, not: " + error);
  }
  join_anew();
}

/// Plans of other sizes: an error on all PEs, before anything runs.
void mismatch() {
  {
    CudaProcess process(placement_from_environment(), small_world());
    World& world = process.world();
    const std::string error = error_of<InvalidArgument>([&] {
      CollectiveOptions options;
      options.algorithm = "one_shot_ll";
      options.max_count = world.pe() == 0 ? 1000 : 2000;
      make_collective(world, Collective::kAllReduce, options);
    });
    if (world.pe() == 0) std::printf("%s\n", error.c_str());
    expect(world.num_pes() == 1 || contains(error, "all PEs must allocate the same"), "not: " + error);
  }
  join_anew();
}

/// Calls with other counts, where calls are checked: an error on all PEs, and no buffer of a user is written.
void other_counts() {
  {
    CudaOptions options = small_world();
    options.check_calls = true;
    CudaProcess process(placement_from_environment(), options);
    World& world = process.world();
    if (world.num_pes() == 1) return;
    const auto plan = make_collective(world, Collective::kAllReduce, two_shot(1000));
    const Symm<std::byte> in = world.heap().allocate<std::byte>(4000, "in");
    const Symm<std::byte> out = world.heap().allocate<std::byte>(4000, "out");
    const std::vector<unsigned char> before(4000, 0x3B);
    world.copy_in(in.local(), before.data(), 4000);
    Stream stream = world.make_stream("main");
    for (int i = 0; i < 10; ++i) plan->run(stream, in, out, 1000);
    stream.synchronize();
    world.barrier();
    world.copy_in(out.local(), before.data(), 4000);
    world.barrier();
    plan->run(stream, in, out, world.pe() == 0 ? 1000 : 999);
    const std::string error = error_of<InvalidArgument>([&] { stream.synchronize(); });
    std::printf("%s\n", error.c_str());
    expect(contains(error, "count 999") && contains(error, "count 1000"), "not: " + error);
    std::vector<unsigned char> after(4000);
    world.copy_out(after.data(), out.local(), 4000);
    expect(after == before, "an output that nobody has touched");
  }
  join_anew();
}

/// What the comparison costs: a graph of 20 calls, with and without.
void cost_of_check() {
  for (const bool checked : {false, true}) {
    CudaOptions options = small_world();
    options.check_calls = checked;
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
    if (world.pe() == 0)
      std::printf("16 KB all-reduce, %s: %.2f us a call\n", checked ? "calls checked" : "unchecked", best * 1000 / 20);
  }
}

void exhausted() {
  CudaProcess process(placement_from_environment(), small_world());
  World& world = process.world();
  if (world.pe() == 0) world.heap().allocate_local<std::byte>(Size{100} << 20, "mine");
  const std::string error =
      error_of<OutOfMemory>([&] { world.heap().allocate<std::byte>(Size{200} << 20, "too large"); });
  if (world.pe() == 0) std::printf("%s\n", error.c_str());
  expect(contains(error, "PE 0: no room for 'too large': 209715200 bytes asked, 163577856 bytes"), "not: " + error);
  check_case(world, {collective_algorithms().front()});
}

/// One PE's host program throws: the others' kernels end at once.
void failed() {
  const double at = now_ms();
  try {
    CudaProcess process(placement_from_environment(), small_world());
    World& world = process.world();
    const Signals lonely = world.heap().signals(4, "lonely");
    Stream stream = world.make_stream("main");
    if (world.pe() == 0) throw std::logic_error("on purpose");
    stream.wait_signal(lonely.local(), 7);
    const std::string error = error_of<RuntimeFailure>([&] { stream.synchronize(); });
    std::printf("after %.0f ms: %s\n", now_ms() - at, error.c_str());
    expect(contains(error, "PE 0: its host program has failed"), "not: " + error);
  } catch (const std::logic_error& error) {
    expect(error.what() == std::string("on purpose"), "the error of this test");
  }
  join_anew();
}

/// One PE is killed while the others wait for it on their GPUs.
void killed(bool is_host) {
  const Placement place = placement_from_environment();
  const int victim = is_host ? 0 : place.pes - 1;
  {
    CudaProcess process(place, small_world());
    World& world = process.world();
    const auto plan = make_collective(world, Collective::kAllReduce, two_shot(100000));
    const Symm<std::byte> data = world.heap().allocate<std::byte>(400000, "data");
    Stream stream = world.make_stream("main");
    for (int i = 0; i < 10; ++i) plan->run(stream, data, data, 100000);
    stream.synchronize();
    world.barrier();
    const double at = now_ms();
    if (world.pe() == victim) std::raise(SIGKILL);
    const std::string error = error_of<RuntimeFailure>([&] {
      plan->run(stream, data, data, 100000);
      stream.synchronize();
    });
    std::printf("after %.0f ms: %s\n", now_ms() - at, error.c_str());
    expect(contains(error, is_host ? "holds the rendezvous is gone" : fmt::format("PE {} is gone", victim)),
           "not: " + error);
  }
  CudaProcess survivors(UniqueId::from_text(std::getenv("NEXT_ID")), place.pe - (is_host ? 1 : 0), place.pes - 1,
                        small_world());
  check_case(survivors.world(), {collective_algorithms().front()});
}

}  // namespace

int run_peer(const std::string& part) {
  try {
    if (part == "devices")
      std::printf("%d\n", cuda_devices());
    else if (part == "begin")
      begin();
    else if (part == "collectives")
      collectives();
    else if (part == "replays")
      replays();
    else if (part == "barrier")
      barrier();
    else if (part == "two_worlds")
      two_worlds();
    else if (part == "again")
      again();
    else if (part == "missing")
      missing();
    else if (part == "mismatch")
      mismatch();
    else if (part == "other_counts")
      other_counts();
    else if (part == "cost_of_check")
      cost_of_check();
    else if (part == "exhausted")
      exhausted();
    else if (part == "failed")
      failed();
    else if (part == "killed")
      killed(false);
    else if (part == "killed_host")
      killed(true);
    else
      return 2;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace tandem::test
