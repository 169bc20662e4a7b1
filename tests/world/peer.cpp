// One process of a world on CPUs: what it is asked for is its first argument. Prints what went wrong; exit
// code 1 then.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
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

namespace tandem::test {
namespace {

constexpr Size kMiB = Size{1} << 20;

struct PeerPlace {
  UniqueId id;
  int pe;
  int pes;
};

FaultyDevices& devices() {
  static FaultyDevices& all = *new FaultyDevices;  // stays for worlds that are destroyed at the program's end
  return all;
}

WorldOptions options(double timeout_s = 30, double arrival_timeout_s = 600) {
  WorldOptions options;
  options.kind = DeviceKind::kHost;
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
std::string end_of(const WorldProcess& process) {
  for (int i = 0; i < 60000 && process.failure().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return process.failure();
}

/// Everybody finds in everybody's part what that one has written.
void check_reach(World& world, const Symm<std::byte>& memory) {
  world.barrier();
  std::memset(memory.local(), 'a' + world.pe(), 16);
  world.barrier();
  Stream stream = world.make_stream("copies");
  for (int pe = 0; pe < world.num_pes(); ++pe) {
    std::array<std::byte, 16> copy{}, host_copy{};
    stream.copy_async(copy.data(), memory.on(pe), Size{16});
    stream.synchronize();
    world.copy_out(host_copy.data(), memory.on(pe), Size{16});
    expect(copy == host_copy, "the same by both copies");
    expect(copy[15] == static_cast<std::byte>('a' + pe), "what PE " + std::to_string(pe) + " wrote");
  }
  world.barrier();
}

/// PE 0's kernel gives up, PE 1's ends for that, and neither is synchronized by the library before their worlds are
/// destroyed. PE 2 learns why, and nobody waits for it.
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

/// All PEs wait, and nobody will come.
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

/// A small all-reduce, for real.
void check_all_reduce(World& world, Size count = 1000) {
  const Symm<float> data = world.heap().allocate<float>(count, "data");
  const std::vector<float> ones(static_cast<std::size_t>(count), 1);
  world.copy_in(data.local(), ones.data(), count * 4);
  Stream stream = world.make_stream("main");
  const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = count});
  world.barrier();
  plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), count);
  stream.synchronize();
  std::vector<float> sums(ones.size());
  world.copy_out(sums.data(), data.local(), count * 4);
  for (const float sum : sums) expect(sum == static_cast<float>(world.num_pes()), "the sum of ones");
  world.barrier();
}

/// Everybody is told when a process is killed within a call, and can be in a new world. The second world's id comes
/// with the first's: the one that is killed has no part in it.
void survive_a_kill(const PeerPlace& place) {
  {
    WorldProcess process(place.id, place.pe, place.pes, options());
    World& world = process.world();
    check_all_reduce(world);
    const Symm<float> data = world.heap().allocate<float>(1000, "more");
    Stream stream = world.make_stream("main");
    const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = 1000});
    if (place.pe == 1) ::kill(::getpid(), SIGKILL);
    expect_error<RuntimeFailure>("PE 1", [&] {
      for (;;) {
        plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), 1000);
        stream.synchronize();
      }
    });
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

/// A PE is stopped. The other learns its name and host, and makes a new world.
void lose_a_stopped_pe(const PeerPlace& place) {
  {
    WorldProcess process(place.id, place.pe, place.pes, options());
    check_all_reduce(process.world());
    if (place.pe == 1) ::raise(SIGSTOP);
    const std::string end = end_of(process);
    expect(end.find("PE 1 (host b) not heard for 2 s") != std::string::npos, "the stopped PE, not: " + end);
  }
  WorldProcess process(UniqueId::create(), 0, 1, options());
  check_all_reduce(process.world());
}

/// The link between two hosts is cut, during calls on PE 0 and 1, between calls on the others. All learn which PEs are
/// lost.
void lose_the_other_host(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  World& world = process.world();
  check_all_reduce(world);
  const Team rail = world.rail_team();
  const Symm<float> data = world.heap().allocate<float>(1000, "more");
  Stream stream = world.make_stream("main");
  const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = 1000}, rail);
  world.barrier();
  std::cout << "ready" << std::endl;
  if (place.pe % 2 == 0)
    expect_error<RuntimeFailure>("not heard for 2 s", [&] {
      for (;;) {
        plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), 1000);
        stream.synchronize();
      }
    });
  const std::string other = place.pe < place.pes / 2 ? "PE 2 (host b), PE 3 (host b)" : "PE 0 (host a), PE 1 (host a)";
  const std::string end = end_of(process);
  expect(end.find("not heard for 2 s") != std::string::npos && end.find("(host ") != std::string::npos,
         other + " lost, not: " + end);
}

/// The engine's libraries change no signal handler of the program.
void keep_handlers(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction handler {};
    ::sigaction(signal, nullptr, &handler);
    expect(handler.sa_handler == SIG_DFL, "no handler of signal " + std::to_string(signal));
  }
  // The host program writes to the next PE, wherever that is.
  World& world = process.world();
  const Symm<int> word = world.heap().allocate<int>(1, "word");
  const int own = place.pe + 1;
  world.copy_in(word.on((place.pe + 1) % place.pes), &own, Size{sizeof own});
  world.barrier();
  expect(*word.local() == (place.pe + place.pes - 1) % place.pes + 1, "the word of the PE before");
}

/// Gathers 40 MiB of each PE, in four calls.
void gather_much(const PeerPlace& place) {
  constexpr Size kCalls = 4, kCount = 10 * kMiB;
  WorldProcess process(place.id, place.pe, place.pes, host_options());
  World& world = process.world();
  const auto in = world.heap().allocate<std::byte>(kCount, "in");
  const auto out = world.heap().allocate<std::byte>(place.pes * kCount, "out");
  std::memset(in.local(), 'a' + place.pe, kCount);
  const auto plan = make_collective(world, Collective::kAllGather,
                                    {.type = DType::kI8, .max_count = kCount, .algorithm = "two_level"});
  Stream stream = world.make_stream("main");
  for (Size i = 0; i < kCalls; ++i) plan->run(stream, in, out, kCount);
  stream.synchronize();
  for (int pe = 0; pe < place.pes; ++pe)
    expect(out.local()[pe * kCount + kCount - 1] == static_cast<std::byte>('a' + pe), "the data of each PE");
}

/// Worlds of the PEs of a rail, which are on several hosts, and of one PE each.
void split_between_hosts(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  const Team node = process.world().node_team();
  const auto rail = process.split(node.me, place.pe, options());
  expect(rail->pes() == place.pes / node.size && rail->world().team().node_size == 1, "a rail");
  check_all_reduce(rail->world());
  const auto own = process.split(place.pe, 0, options());
  expect(own->pes() == 1, "a world of one PE");
  check_all_reduce(own->world());
  check_all_reduce(process.world());
}

/// Returns the number of entries of a folder.
Size count_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}

/// Worlds leave no descriptors and no threads. The first ones load libraries, and a split's rendezvous ends a little
/// later, so a few more are no leak.
void leave_nothing(const PeerPlace& place) {
  constexpr int kFirst = 5, kWorlds = 20;
  WorldProcess process(place.id, place.pe, place.pes, options());
  Size before = 0, after = 0;
  for (int i = 0; i < kWorlds; ++i) {
    const auto same = process.split(0, place.pe, options());
    check_all_reduce(same->world());
    after = count_of("/proc/self/fd") + count_of("/proc/self/task");
    if (i == kFirst) before = after;
  }
  expect(after - before < (kWorlds - kFirst) / 2, fmt::format("{} descriptors and threads, not {}", before, after));
}

/// A world cannot be made. The environment holds a part of the error's text.
void be_refused(const PeerPlace& place) {
  const char* const text = std::getenv("TANDEM_TEST_ERROR");
  const auto make = [&] { WorldProcess(place.id, place.pe, place.pes, options()); };
  if (std::getenv("TANDEM_TEST_INVALID") != nullptr)
    expect_error<InvalidArgument>(text, make);
  else
    expect_error<Unsupported>(text, make);
}

/// A world of one host loads no engine.
void load_no_engine(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  check_all_reduce(process.world());
  expect(::dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr, "no libfabric in this process");
}

/// Memory of the user is refused between hosts, and the world goes on.
void register_between_hosts(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  std::array<std::byte, 64> memory{};
  expect_error<Unsupported>("a world of several hosts has no registered memory",
                            [&] { process.register_buffer(memory.data(), 64); });
  check_reach(process.world(), process.world().heap().allocate<std::byte>(64, "data"));
}

/// The heap grows, and peers reach the new memory.
void grow_between_hosts(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  for (int i = 0; i < 3; ++i)
    check_reach(process.world(), process.world().heap().allocate<std::byte>(6 * kMiB, "more"));
}

void report(const std::vector<std::string>& wrong) {
  for (const std::string& one : wrong) std::cout << one << std::endl;
  if (!wrong.empty()) throw std::runtime_error("wrong results");
}

void run_all_collectives(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, host_options());
  const auto cases = collective_cases(place.pes, place.pes == 3);
  report(run_collectives(process.world(), process.world().team().one_node() ? cases : between_nodes(cases)));
}

void run_all_operators(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, host_options());
  report(run_operators(process.world(), operator_cases(place.pes)));
}

const std::map<std::string, std::function<void(const PeerPlace&)>>& programs() {
  static const std::map<std::string, std::function<void(const PeerPlace&)>> all{
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
      {"lose_a_stopped_pe", lose_a_stopped_pe},
      {"lose_the_other_host", lose_the_other_host},
      {"keep_handlers", keep_handlers},
      {"split_between_hosts", split_between_hosts},
      {"leave_nothing", leave_nothing},
      {"gather_much", gather_much},
      {"be_refused", be_refused},
      {"load_no_engine", load_no_engine},
      {"register_between_hosts", register_between_hosts},
      {"grow_between_hosts", grow_between_hosts},
      {"collectives", run_all_collectives},
      {"operators", run_all_operators},
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
    if (argc < 5) return 2;
    const PeerPlace place{id_of(argv[2]), std::atoi(argv[3]), std::atoi(argv[4])};
    const auto found = programs().find(what);
    if (found == programs().end()) return 2;
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
