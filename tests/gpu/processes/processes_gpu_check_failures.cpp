// The parts in which something fails on purpose.
#include <cuda.h>
#include <cuda_runtime.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "gpu/processes/process_peer.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

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

/// Whether this process has something on that GPU.
bool is_started(int device) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &function, 12000, cudaEnableDefault, &found);
  expect(function != nullptr, "a driver that says what is started");
  unsigned flags = 0;
  int active = 0;
  reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(function)(device, &flags, &active);
  return active != 0;
}

}  // namespace

/// A call that is missing on one PE: all get an error that names PE and signal, and can make a new world.
void missing_call() {
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
    expect(contains(error, "so far PE 0 has called all_reduce two_shot f32 sum of at most 1000 0 times"),
           "who has not called, not: " + error);
  }
  join_anew();
}

/// Plans of other sizes: an error on all PEs, before anything runs.
void other_plans() {
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
    expect(world.num_pes() == 1 || contains(error, "all PEs must make the same plans"), "not: " + error);
  }
  join_anew();
}

/// Calls with different counts are found by the host programs or by the GPUs. All PEs get an error, and no user buffer
/// is written. Kernels that have started wait for data that never comes, and end there.
void other_counts(bool by_gpus) {
  {
    CudaOptions options = small_world();
    options.compare_calls = !by_gpus;
    options.check_calls = by_gpus;
    CudaProcess process(placement_from_environment(), options);
    World& world = process.world();
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
    const std::string error = error_of<InvalidArgument>([&] {
      plan->run(stream, in, out, world.pe() == 0 ? 1000 : 999);
      stream.synchronize();
    });
    std::printf("%s\n", error.c_str());
    expect(contains(error, "count 999") && contains(error, "count 1000"), "not: " + error);
    std::vector<unsigned char> after(4000);
    world.copy_out(after.data(), out.local(), 4000);
    expect(after == before, "an untouched output");
  }
  join_anew();
}

/// Processes that would share a GPU and may not: an error on all PEs, before they have memory there.
void shared_gpu() {
  CudaOptions options = small_world();
  options.device = 0;
  const char* const given = std::getenv("TANDEM_SHARE_GPU");
  const std::string before = given == nullptr ? "" : given;
  unsetenv("TANDEM_SHARE_GPU");
  const std::string error = error_of<Unsupported>([&] { CudaProcess(placement_from_environment(), options); });
  expect(contains(error, "PEs 0 and 1 are processes on one GPU"), "not: " + error);
  setenv("TANDEM_SHARE_GPU", before.c_str(), 1);
  join_anew();
}

void exhausted_heap() {
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
void failed_program() {
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

/// PE 0's kernel gives up, and its program synchronizes by CUDA alone: what destroys the world tells the others, and
/// waits for no process. The threads that learn of it start no GPU.
void unreported_end() {
  const Placement place = placement_from_environment();
  const double at = now_ms();
  {
    CudaProcess process(place, small_world(place.pe == 0 ? 1 : 20));
    const Signals lonely = process.world().heap().signals(4, "lonely");
    Stream stream = process.world().make_stream("main");
    stream.wait_signal(lonely.local(), 7);
    if (place.pe == 0) {
      cudaStreamSynchronize(static_cast<cudaStream_t>(stream.native()));
    } else {
      for (int i = 0; i < 2000 && process.failure().empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::printf("after %.0f ms: %s\n", now_ms() - at, process.failure().c_str());
      expect(contains(process.failure(), "PE 0: block 0 gave up waiting for lonely[0] on PE 0 >= 7, found 0"),
             "its text");
    }
  }
  std::printf("after %.0f ms: destroyed\n", now_ms() - at);
  expect(now_ms() - at < 15000, "no process that waits for another one's end");
  if (place.pe > 0 && cuda_devices() > 1) expect(!is_started(0), "nothing of this process on GPU 0");
  join_anew();
}

/// One PE is killed while the others wait for it on their GPUs.
void killed_peer(bool is_host) {
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

}  // namespace tandem::test
