// One process of a world on CPUs: what it is asked for is its first argument. Prints what went wrong; exit
// code 1 then.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/worlds.h"
#include "world/cases.h"
#include "world/faulty_devices.h"
#include "world/peer.h"

namespace tandem::test {
namespace {

FaultyDevices& devices() {
  static FaultyDevices& all = *new FaultyDevices;  // stays for worlds that are destroyed at the program's end
  return all;
}

/// PE 0's kernel gives up, PE 1's ends for that, and neither is synchronized by the library before their worlds are
/// destroyed. PE 2 learns why, and no PE waits for it.
void abort_waits(const PeerPlace& place, bool leaves_first) {
  WorldProcess process(place.id, place.pe, place.pes,
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
void come_late(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options(1));
  World& world = process.world();
  const Signals ready = world.heap().signals(1, "ready");
  Stream stream = world.make_stream("main");
  if (place.pe == 2) std::this_thread::sleep_for(std::chrono::seconds(4));
  for (int pe = 0; pe < 2 && place.pe == 2; ++pe) stream.write_signal(ready.on(pe), 1);
  if (place.pe < 2) stream.wait_signal(ready.local(), 1);
  stream.synchronize();
  world.barrier();
}

/// All PEs wait for a signal that is never sent.
void stand_still(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options(0.2));
  World& world = process.world();
  const Signals lonely = world.heap().signals(1, "lonely");
  Stream stream = world.make_stream("main");
  stream.wait_signal(lonely.local(), 7);
  expect_error<Timeout>("found 0; all PEs were waiting", [&] { stream.synchronize(); });
}

/// One PE ends the world, which another thread destroys.
void learn_of_the_end(const PeerPlace& place) {
  auto process = std::make_unique<WorldProcess>(place.id, place.pe, place.pes, options());
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
}

/// One PE cannot make its part of the world: the others are told why, at once.
void cannot_begin(const PeerPlace& place) {
  const auto begin = [&] { WorldProcess(place.id, place.pe, place.pes, options()); };
  if (place.pe == 1) {
    devices().faults.fail_next("create", Faults::Kind::kOutOfMemory);
    expect_error<OutOfMemory>("symmetric heap: ", begin);
  } else {
    expect_error<OutOfMemory>("PE 1: symmetric heap: ", begin);
  }
}

void cannot_load(const PeerPlace& place) {
  if (place.pe == 2) devices().faults.fail_next("load_kernels");
  expect_error<RuntimeFailure>(place.pe == 2 ? "load_kernels was told" : "PE 2: load_kernels was told",
                               [&] { WorldProcess(place.id, place.pe, place.pes, options()); });
}

/// If one PE cannot register or unregister memory, all PEs get the error at once, and the world goes on.
void register_memory(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  World& world = process.world();
  const auto fresh = [&] {
    world::DeviceMemory& all = devices().memory();
    std::byte* const at = all.reserve(2 * kMiB);
    all.map(at, {all.create(place.pe, world::Handles::kDescriptors, 2 * kMiB), 2 * kMiB});
    return static_cast<void*>(at);
  };
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
  for (const char* const call : {"reserve", "export", "import", "map", "allow"}) {
    if (place.pe == 1) devices().faults.fail_next(call);
    refused(failed, std::string("PE 1: ") + call, memory, 64);
  }
  check_reach(world, process.register_buffer(memory, 64));
  refused(invalid, "is registered already", place.pe == 0 ? memory : fresh(), 64);
  expect_error<InvalidArgument>("PE 2: registration: ",
                                [&] { process.unregister_buffer(place.pe == 2 ? &process : memory); });
  process.unregister_buffer(memory);
  check_reach(world, process.register_buffer(memory, 64));
  const int file = ::memfd_create("of the program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (::ftruncate(file, kMiB) != 0) throw std::runtime_error("no memory file");
  void* const in_file = ::mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  check_reach(world, process.register_buffer(in_file, 64));
  process.unregister_buffer(in_file);
  ::munmap(in_file, kMiB);
  ::close(file);
}

/// Likewise the growth of the heap.
void grow(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  World& world = process.world();
  const auto allocate = [&] { return world.heap().allocate<std::byte>(6 * kMiB, "more"); };
  for (const char* const call : {"create", "export", "import", "map", "allow", "commit"}) {
    if (place.pe == 1) devices().faults.fail_next(call);
    expect_error<RuntimeFailure>(std::string("PE 1: ") + call, allocate);
  }
  if (place.pe == 2) devices().faults.fail_next("create", Faults::Kind::kOutOfMemory);
  expect_error<OutOfMemory>("PE 2: symmetric heap: ", allocate);
  check_reach(world, allocate());
}

/// The heap memory of plans is used again when all PEs have released them. Until then no PE gets it. A PE also gives
/// back the memory of a plan that could not be made.
void reuse_plans(const PeerPlace& place) {
  WorldOptions small = options();
  small.heap_limit_bytes = 6 * kMiB;  // three plans, and half of one
  WorldProcess process(place.id, place.pe, place.pes, small);
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
void write_at_once(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
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
void fork_within(const PeerPlace& place) {
  static std::unique_ptr<WorldProcess> process;
  process = std::make_unique<WorldProcess>(place.id, place.pe, place.pes, options());
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
  WorldThreads threads(4, options());
  threads.run([](World& world) { world.barrier(); });
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, 256 * kMiB);
  ::pthread_setattr_default_np(&attributes);
  limit_address_space(400 * kMiB);
  expect_error<RuntimeFailure>("thread of PE 1", [&] { threads.run([](World& world) { world.barrier(); }); });
}

/// All PEs learn when a process is killed within a call, and can be in a new world. The second world's id comes
/// with the first's: the one that is killed has no part in it.
void survive_a_kill(const PeerPlace& place) {
  {
    WorldProcess process(place.id, place.pe, place.pes, options());
    World& world = process.world();
    check_all_reduce(world);
    if (place.pe == 1) ::kill(::getpid(), SIGKILL);
    const char* const name = world.team().one_node() ? "PE 1 is gone" : "PE 1 (host b) is gone";
    expect_error<RuntimeFailure>(name, [&] { reduce_to_the_end(world, world.team()); });
  }
  const int pe = place.pe == 0 ? 0 : place.pe - 1;
  WorldProcess process(UniqueId::from_text(std::getenv("TANDEM_TEST_SECOND_ID")), pe, place.pes - 1, options());
  check_all_reduce(process.world());
}

/// One PE does not make the call that the others wait in.
void miss_a_call(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options(30, place.pe == 0 ? 1 : 600));
  World& world = process.world();
  const Symm<float> data = world.heap().allocate<float>(1000, "data");
  Stream stream = world.make_stream("main");
  const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = 1000});
  if (place.pe == 2) {
    expect(end_of(process).find("PE 0: block ") != std::string::npos, "PE 0 that gave up, not: " + end_of(process));
    return;
  }
  plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), 1000);
  expect_error<Timeout>("gave up waiting for", [&] { stream.synchronize(); });
}

/// Calls with differing counts: no PE hangs.
void differ(const PeerPlace& place, bool on_devices) {
  WorldOptions all = options();
  all.compare_calls = !on_devices;
  all.check_calls = on_devices;
  WorldProcess process(place.id, place.pe, place.pes, all);
  World& world = process.world();
  const Symm<float> data = world.heap().allocate<float>(1000, "data");
  Stream stream = world.make_stream("main");
  const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = 1000});
  expect_error<InvalidArgument>("count", [&] {
    plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), place.pe == 1 ? 500 : 1000);
    stream.synchronize();
  });
}

/// A heap that is too small for one buffer: an error on all, and the world goes on.
void exhaust_the_heap(const PeerPlace& place) {
  WorldOptions small = options();
  small.heap_limit_bytes = 0;
  WorldProcess process(place.id, place.pe, place.pes, small);
  expect_error<OutOfMemory>("no room for 'too much'",
                            [&] { process.world().heap().allocate<std::byte>(64 * kMiB, "too much"); });
  check_all_reduce(process.world());
}

/// Parts that do not fit the addresses of a process.
void exhaust_addresses(const PeerPlace& place) {
  WorldOptions large = options();
  large.heap_limit_bytes = Size{30} << 40;
  expect_error<InvalidArgument>("3 PEs x 307", [&] { WorldProcess(place.id, place.pe, place.pes, large); });
}

void report(const std::vector<std::string>& wrong) {
  for (const std::string& one : wrong) std::cout << one << std::endl;
  if (!wrong.empty()) throw std::runtime_error("wrong results");
}

void run_all_collectives(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, host_options());
  std::vector<RoundsCase> cases = collective_cases(place.pes, place.pes == 3);
  if (process.world().team().one_node()) return report(run_collectives(process.world(), cases));
  if (place.pes == 4) {
    const std::vector<RoundsCase> large = large_cases(place.pes);
    cases.insert(cases.end(), large.begin(), large.end());
  }
  report(run_collectives(process.world(), between_nodes(cases)));
}

void run_all_operators(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, host_options());
  report(run_operators(process.world(), operator_cases(place.pes)));
}

void stress_experts(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, host_options());
  report(run_expert_stress(process.world()));
}

const Programs& programs() {
  static const Programs all{
      {"abort_waits", [](const PeerPlace& place) { abort_waits(place, false); }},
      {"give_up_and_leave", [](const PeerPlace& place) { abort_waits(place, true); }},
      {"come_late", come_late},
      {"stand_still", stand_still},
      {"learn_of_the_end", learn_of_the_end},
      {"cannot_begin", cannot_begin},
      {"cannot_load", cannot_load},
      {"register_memory", register_memory},
      {"grow", grow},
      {"reuse_plans", reuse_plans},
      {"write_at_once", write_at_once},
      {"fork_within", fork_within},
      {"survive_a_kill", survive_a_kill},
      {"miss_a_call", miss_a_call},
      {"differ", [](const PeerPlace& place) { differ(place, false); }},
      {"differ_on_devices", [](const PeerPlace& place) { differ(place, true); }},
      {"exhaust_the_heap", exhaust_the_heap},
      {"exhaust_addresses", exhaust_addresses},
      {"collectives", run_all_collectives},
      {"operators", run_all_operators},
      {"expert_stress", stress_experts},
  };
  return all;
}

/// "new:ADDRESS" makes one there and prints it, for the other processes.
UniqueId id_of(const std::string& text) {
  if (text.rfind("new:", 0) != 0) return UniqueId::from_text(text);
  UniqueId id = UniqueId::create(text.substr(4));
  std::cout << id.text() << std::endl;
  return id;
}

int run_peer(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const world::ReplacedDevices replaced(devices());
  try {
    if (what == "start_too_many_threads") {
      start_too_many_threads();
      return 0;
    }
    if (what == "meet_by_environment") {
      meet_by_environment();
      return 0;
    }
    if (argc < 5) return 2;
    const PeerPlace place{id_of(argv[2]), std::atoi(argv[3]), std::atoi(argv[4])};
    Programs all = programs();
    all.merge(Programs(programs_between_hosts()));
    all.merge(Programs(programs_that_lose_hosts()));
    all.merge(Programs(programs_of_fabric()));
    all.merge(Programs(programs_of_recording()));
    all.merge(Programs(programs_after_faults()));
    const auto found = all.find(what);
    if (found == all.end()) return 2;
    found->second(place);
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) { return tandem::test::run_peer(argc, argv); }
