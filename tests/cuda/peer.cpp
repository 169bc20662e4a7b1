// One process of a world on simulated GPUs: what it is asked for is its first argument. Prints what went wrong; exit
// code 1 then.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "cuda/simulated/gpus.h"
#include "tandem/collectives.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

constexpr Size kMiB = Size{1} << 20;

struct Place {
  UniqueId id;
  int pe;
  int pes;
};

CudaOptions options(double timeout_s = 30, double arrival_timeout_s = 600) {
  CudaOptions options;
  options.heap_bytes = 2 * kMiB;
  options.heap_limit_bytes = 64 * kMiB;
  options.timeout_s = timeout_s;
  options.arrival_timeout_s = arrival_timeout_s;
  options.join_timeout_s = 600;
  return options;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

/// `work` ends with an error of type E whose text has `part` in it.
template <class E, class Work>
void expect_error(const std::string& part, Work work) {
  try {
    work();
  } catch (const E& error) {
    return expect(std::string(error.what()).find(part) != std::string::npos, part + ", not: " + error.what());
  } catch (const std::exception& error) {
    throw std::runtime_error("expected another kind of error with " + part + ", not: " + error.what());
  }
  throw std::runtime_error("expected an error: " + part);
}

/// Why the world is over, once it is.
std::string end_of(const CudaProcess& process) {
  for (int i = 0; i < 60000 && process.failure().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return process.failure();
}

/// Everybody finds in everybody's part what that one has written.
void check_reach(World& world, const Symm<std::byte>& memory) {
  world.barrier();
  std::memset(memory.local(), 'a' + world.pe(), 16);
  world.barrier();
  for (int pe = 0; pe < world.num_pes(); ++pe)
    expect(memory.on(pe)[15] == static_cast<std::byte>('a' + pe), "what PE " + std::to_string(pe) + " wrote");
  world.barrier();
}

/// PE 0's kernel gives up, PE 1's ends for that, and neither is synchronized by the library before their worlds are
/// destroyed. PE 2 learns why, and nobody waits for it.
void give_up(const Place& place, bool leaves_first) {
  CudaProcess process(place.id, place.pe, place.pes,
                      options(30, place.pe == 0 ? 3 : 600));  // by then PE 1 waits on a busy machine too
  World& world = process.world();
  const Signals lonely = world.heap().signals(4, "lonely");
  if (place.pe < 2) {
    world.make_stream("main").wait_signal(lonely.local(), 7);
    if (leaves_first) process.leave();
    return;
  }
  const std::string end = end_of(process);
  expect(end.find("PE 0: block 0 gave up waiting for lonely[0] on PE 0 >= 7, found 0; PE 2 was not waiting") !=
             std::string::npos,
         "what PE 0 waited for, not: " + end);
}

/// Two PEs wait far longer than a world may stand still for the third, which does not wait meanwhile.
void come_late(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options(1));
  World& world = process.world();
  const Signals ready = world.heap().signals(1, "ready");
  Stream stream = world.make_stream("main");
  if (place.pe == 2) std::this_thread::sleep_for(std::chrono::seconds(4));
  for (int pe = 0; pe < 2 && place.pe == 2; ++pe) stream.write_signal(ready.on(pe), 1);
  if (place.pe < 2) stream.wait_signal(ready.local(), 1);
  stream.synchronize();
  world.barrier();
}

/// All PEs wait, and nobody will come.
void stand_still(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options(0.2));
  World& world = process.world();
  const Signals lonely = world.heap().signals(1, "lonely");
  Stream stream = world.make_stream("main");
  stream.wait_signal(lonely.local(), 7);
  expect_error<Timeout>("found 0; all PEs were waiting", [&] { stream.synchronize(); });
}

/// The threads that learn of the end and that end the world have no GPU of their own, and take no part of GPU 0.
void learn_of_the_end(const Place& place) {
  auto process = std::make_unique<CudaProcess>(place.id, place.pe, place.pes, options());
  {
    World& world = process->world();
    const Signals lonely = world.heap().signals(4, "lonely");
    Stream stream = world.make_stream("main");
    world.barrier();
    if (place.pe == 0) process->abort("on purpose");
    stream.wait_signal(lonely.local(), 7);
    expect_error<RuntimeFailure>("PE 0: aborted: on purpose", [&] { stream.synchronize(); });
  }
  std::thread([&] { process.reset(); }).join();
  for (int device = 0; device < kSimulatedGpus; ++device)
    expect(has_context(device) == (device == place.pe), "nothing on GPU " + std::to_string(device));
}

/// One PE cannot make its part of the world: the others are told why, at once.
void cannot_begin(const Place& place) {
  const auto begin = [&] { CudaProcess(place.id, place.pe, place.pes, options()); };
  if (place.pe == 1) {
    fail_next("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
    expect_error<OutOfMemory>("symmetric heap: ", begin);
  } else {
    expect_error<OutOfMemory>("PE 1: symmetric heap: ", begin);
  }
}

void cannot_load(const Place& place) {
  if (place.pe == 2) fail_next("load_signal_kernels");
  expect_error<RuntimeFailure>(place.pe == 2 ? "loading kernels" : "PE 2: loading kernels",
                               [&] { CudaProcess(place.id, place.pe, place.pes, options()); });
}

/// If one PE cannot register or unregister memory, all PEs get the error at once, and the world goes on.
void register_memory(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options());
  World& world = process.world();
  const auto fresh = [&] { return exportable_memory(place.pe, 2 * kMiB); };
  void* const memory = fresh();
  const auto refused = [&]<class E>(const E*, const std::string& part, void* pointer, Size bytes) {
    expect_error<E>(part, [&] { process.register_buffer(pointer, bytes); });
  };
  const auto invalid = static_cast<const InvalidArgument*>(nullptr);
  const auto failed = static_cast<const RuntimeFailure*>(nullptr);
  refused(invalid, "PE 1: pointer: NULL given", place.pe == 1 ? nullptr : memory, 64);
  refused(invalid, "PE 2: bytes: 0 given", memory, place.pe == 2 ? 0 : 64);
  refused(invalid, "PE 0: bytes: -1 given", memory, place.pe == 0 ? -1 : 64);
  refused(static_cast<const Unsupported*>(nullptr), "PE 1's memory cannot be mapped by other processes",
          place.pe == 1 ? static_cast<void*>(&process) : memory, 64);
  for (const char* const call : {"cuMemAddressReserve", "cuMemExportToShareableHandle",
                                 "cuMemImportFromShareableHandle", "cuMemMap", "cuMemSetAccess"}) {
    if (place.pe == 1) fail_next(call);
    refused(failed, std::string("PE 1: ") + call, memory, 64);
  }
  check_reach(world, process.register_buffer(memory, 64));
  refused(invalid, "is registered already", place.pe == 0 ? memory : fresh(), 64);
  expect_error<InvalidArgument>("PE 2: registration: ",
                                [&] { process.unregister_buffer(place.pe == 2 ? &process : memory); });
  process.unregister_buffer(memory);
  check_reach(world, process.register_buffer(memory, 64));
}

/// Likewise the growth of the heap.
void grow(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options());
  World& world = process.world();
  const auto allocate = [&] { return world.heap().allocate<std::byte>(6 * kMiB, "more"); };
  for (const char* const call : {"cuMemCreate", "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle",
                                 "cuMemMap", "cuMemSetAccess"}) {
    if (place.pe == 1) fail_next(call);
    expect_error<RuntimeFailure>(std::string("PE 1: ") + call, allocate);
  }
  if (place.pe == 2) fail_next("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
  expect_error<OutOfMemory>("PE 2: symmetric heap: ", allocate);
  check_reach(world, allocate());
}

/// Heap memory of plans is reused when all PEs have released it. Until then no PE gets it. Memory of a plan that could
/// not be made is returned.
void reuse_plans(const Place& place) {
  CudaOptions small = options();
  small.heap_limit_bytes = 6 * kMiB;  // three plans, and half of one
  CudaProcess process(place.id, place.pe, place.pes, small);
  World& world = process.world();
  CollectiveOptions large;
  large.algorithm = "two_shot";
  large.max_count = 200'000;
  large.local_in = large.local_out = true;
  const auto make = [&] { return make_collective(world, Collective::kAllReduce, large); };
  for (int i = 0; i < 20; ++i) make();
  auto first = make();
  const auto second = make();
  const auto third = make();
  if (place.pe != 1) first.reset();
  for (int i = 0; i < 3; ++i) expect_error<OutOfMemory>("PE 0: no room for ", make);
  first.reset();
  make();
  check_reach(world, world.heap().allocate<std::byte>(64, "data"));
}

/// A PE that is late does not clear what its peers have written to its part.
void write_at_once(const Place& place) {
  CudaProcess process(place.id, place.pe, place.pes, options());
  World& world = process.world();
  if (place.pe == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto data = world.heap().allocate<std::byte>(16, "data");
  for (int pe = 0; pe < place.pes; ++pe) data.on(pe)[place.pe] = static_cast<std::byte>(place.pe);
  world.barrier();
  for (int from = 0; from < place.pes; ++from)
    expect(data.local()[from] == static_cast<std::byte>(from), "what PE " + std::to_string(from) + " wrote");
  world.barrier();
}

/// A child that ends by exit() destroys its copy of the world.
void fork_within(const Place& place) {
  static std::unique_ptr<CudaProcess> process;
  process = std::make_unique<CudaProcess>(place.id, place.pe, place.pes, options());
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = -1;
  ::waitpid(child, &status, 0);
  expect(status == 0, "a child that ends well");
  check_reach(process->world(), process->world().heap().allocate<std::byte>(64, "data"));
  process.reset();
}

/// As many bytes of address space as there are now, and `more`.
void limit_address_space(Size more) {
  Size pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + more);
  ::setrlimit(RLIMIT_AS, &limit);
}

/// The system has room for the thread of one PE: an error, and no thread is left that waits for the others.
void start_too_many_threads() {
  CudaThreads threads(4, options());
  threads.run([](World& world) { world.barrier(); });
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 256 * kMiB);
  ::pthread_setattr_default_np(&attributes);
  limit_address_space(400 * kMiB);
  expect_error<RuntimeFailure>("thread of PE 1", [&] { threads.run([](World& world) { world.barrier(); }); });
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "start_too_many_threads") {
      start_too_many_threads();
      return 0;
    }
    if (argc < 5) return 2;
    const Place place{UniqueId::from_text(argv[2]), std::atoi(argv[3]), std::atoi(argv[4])};
    if (what == "give_up")
      give_up(place, false);
    else if (what == "give_up_and_leave")
      give_up(place, true);
    else if (what == "come_late")
      come_late(place);
    else if (what == "stand_still")
      stand_still(place);
    else if (what == "learn_of_the_end")
      learn_of_the_end(place);
    else if (what == "cannot_begin")
      cannot_begin(place);
    else if (what == "cannot_load")
      cannot_load(place);
    else if (what == "register_memory")
      register_memory(place);
    else if (what == "grow")
      grow(place);
    else if (what == "reuse_plans")
      reuse_plans(place);
    else if (what == "write_at_once")
      write_at_once(place);
    else if (what == "fork_within")
      fork_within(place);
    else
      return 2;
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) { return tandem::test::run(argc, argv); }
