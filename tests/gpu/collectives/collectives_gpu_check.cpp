// Checks the collectives on the GPUs that it finds. Prints what fails, and "N passed, N failed"; exit code 1 if
// anything failed.
//
//   collectives_gpu_check [REPLAYS [PES [every]]]     replays of each algorithm's captured graph (10); only so many PEs
//                                                     (0: one on each GPU, then 3, 4 and 8 that share them)
//
// Every collective is tried with each type, operation and size, in place and not, with alternating algorithms. If each
// PE has a GPU, every algorithm is also tried with each type. `every`: every algorithm with every combination.

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <thread>

#include "gpu/counted_check.h"
#include "gpu/graph.h"
#include "support/collective_rounds.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

CudaOptions small_world(double timeout_s = 10) {
  CudaOptions options;
  options.heap_bytes = Size{512} << 20;
  options.timeout_s = options.arrival_timeout_s = timeout_s;
  return options;
}

/// All PEs' results together. `at`: the case that the last PE to begin one began.
std::vector<RoundsResult> run_in_one_world(int pes, std::span<const RoundsCase> cases, std::atomic<std::size_t>& at) {
  std::vector<RoundsResult> results(cases.size());
  std::mutex mutex;
  CudaThreads threads(pes, small_world());
  threads.run([&](World& world) {
    // One for all: streams of PEs that share a GPU have to have hardware queues of their own.
    Stream stream = world.make_stream("main");
    for (std::size_t i = 0; i < cases.size(); ++i) {
      at = i;
      const RoundsResult own = dispatch(
          cases[i].type, [&]<class T>() { return CollectiveRounds<T>(world, cases[i], capture_graph).run(stream); });
      const std::lock_guard lock(mutex);
      RoundsResult& all = results[i];
      const std::uint64_t common = all.checked == 0 ? own.common : all.common;
      if (own.common != common && all.wrong == 0) {
        ++all.wrong;
        all.first_wrong = "two PEs' results differ";
      }
      all.add(own);
      all.common = common;
    }
  });
  return results;
}

/// Returns how many of the cases have had their turn.
std::size_t check_in_one_world(int pes, std::span<const RoundsCase> cases, bool twice) {
  std::atomic<std::size_t> at{0};
  try {
    const std::vector<RoundsResult> results = run_in_one_world(pes, cases, at);
    const std::vector<RoundsResult> again = twice ? run_in_one_world(pes, cases, at) : results;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      std::string problem;
      if (results[i].wrong > 0)
        problem =
            fmt::format("{} of {} wrong, first: {}", results[i].wrong, results[i].checked, results[i].first_wrong);
      else if (results[i].hash != again[i].hash)
        problem = "two runs differ";
      count_check(describe(cases[i], pes), problem);
    }
  } catch (const std::exception& error) {
    count_check(fmt::format("{}, case {} of {} in this world", describe(cases[at], pes), at + 1, cases.size()),
                error.what());
    return at + 1;
  }
  return cases.size();
}

/// Memory that a case takes of its world's heap, about: buffers, and packets or staging, of groups for each peer.
Size room_of(const RoundsCase& c, int pes) {
  const Size staging = c.algorithm.name == "grouped" ? pes * (Size{4} << 20) : Size{1} << 20;
  return staging + 16 * c.count * pes * size_of(c.type);
}

/// A world costs a tenth of a second on four GPUs, so as many cases as its heap has room for share one.
void check(int pes, std::span<const RoundsCase> cases, bool twice = false) {
  while (!cases.empty()) {
    std::size_t some = 0;
    for (Size room = 0; some < cases.size() && room < small_world().heap_bytes / 2; ++some)
      room += room_of(cases[some], pes);
    cases = cases.subspan(check_in_one_world(pes, cases.first(some), twice));
  }
}

/// Returns the algorithms that `pes` PEs can run on this machine. Multicast is left out. Copy engines are left out if
/// PEs share a GPU and its queues, since their concurrency is not guaranteed.
std::vector<AlgorithmInfo> algorithms(int pes) {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (info.name != "multimem" && (!info.by_copy_engine || pes <= cuda_devices())) list.push_back(info);
  }
  return list;
}

void add(std::vector<RoundsCase>& cases, RoundsCase c) {
  cases.push_back(c);
  if (!traits(c.algorithm.collective).has_place) return;
  c.in_place = true;
  cases.push_back(c);
}

/// Some operations x odd sizes x in-place of a collective and type. `next()`: the algorithm of the next case.
template <class Next>
void add_type(std::vector<RoundsCase>& cases, int pes, Collective collective, DType type, std::span<const ReduceOp> ops,
              Next next) {
  for (const ReduceOp op : ops) {
    if (!reduces(collective) && op != ReduceOp::kSum) continue;
    for (const Size count : {Size{1}, Size{1003}, Size{6007}}) {
      RoundsCase c{next(), type, op, count};
      c.root = count == 1003 ? pes - 1 : 0;
      add(cases, c);
    }
    if (op != ReduceOp::kSum) continue;
    RoundsCase random{next(), type, op, 3001};
    random.random = true;
    add(cases, random);
  }
}

void check_each_algorithm(int pes, std::span<const ReduceOp> ops) {
  std::vector<RoundsCase> cases;
  for (const AlgorithmInfo& info : algorithms(pes))
    for (const DType type : kDTypes) add_type(cases, pes, info.collective, type, ops, [&] { return info; });
  check(pes, cases);
}

void check_each_collective(int pes) {
  std::map<Collective, std::vector<AlgorithmInfo>> all;
  for (const AlgorithmInfo& info : algorithms(pes)) all[info.collective].push_back(info);
  std::vector<RoundsCase> cases;
  for (const auto& each : all) {
    std::size_t turn = 0;
    for (const DType type : kDTypes)
      add_type(cases, pes, each.first, type, kReduceOps, [&] { return each.second[turn++ % each.second.size()]; });
  }
  check(pes, cases);
}

void check_large(int pes) {
  std::vector<RoundsCase> cases;
  for (const AlgorithmInfo& info : algorithms(pes))
    add(cases, {info, DType::kBF16, ReduceOp::kSum, (Size{1} << 17) + 5});
  check(pes, cases);
}

void check_replays(int pes, int replays) {
  std::vector<RoundsCase> cases;
  for (const AlgorithmInfo& info : algorithms(pes)) {
    RoundsCase c{info, DType::kBF16, ReduceOp::kSum, 4099};
    c.graph = true;
    c.rounds = replays;
    RoundsCase random = c;
    random.random = true;
    random.rounds = 5;
    cases.push_back(c);
    cases.push_back(random);
  }
  check(pes, cases, true);
}

/// Waits last longer than a world may stand still while a PE is in none, and end soon once all PEs wait in vain.
void check_stall(int pes) {
  std::string problem;
  try {
    CudaOptions patient = small_world(0.3);
    patient.arrival_timeout_s = 60;
    CudaThreads threads(pes, patient);
    threads.run([](World& world) {
      CollectiveOptions options;
      options.max_count = 1000;
      options.algorithm = "one_shot_ll";
      const auto plan = make_collective(world, Collective::kAllReduce, options);
      const Symm<std::byte> data = world.heap().allocate<std::byte>(4000, "data");
      Stream stream = world.make_stream("main");
      if (world.pe() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      plan->run(stream, data, data, 1000);
      stream.synchronize();
    });
  } catch (const std::exception& error) {
    problem = error.what();
  }
  count_check("a PE that comes late", problem);

  problem = "no error";
  try {
    CudaOptions patient = small_world(0.3);
    patient.arrival_timeout_s = 60;
    CudaThreads threads(pes, patient);
    threads.run([](World& world) {
      const Signals lonely = world.heap().signals(1, "lonely");
      Stream stream = world.make_stream("main");
      stream.wait_signal(lonely.local(), 7);
      stream.synchronize();
    });
  } catch (const Timeout& error) {
    const std::string text = error.what();
    problem = text.find("all PEs were waiting") != std::string::npos ? "" : text;
    std::printf("as it should be: %s\n", text.c_str());
  }
  count_check("a world that stands still", problem);
}

/// A wait that no PE answers ends with an error that names the signal, and the process goes on.
void check_timeout(int pes) {
  std::string problem = "no error";
  try {
    CudaThreads threads(pes, small_world(0.5));
    threads.run([](World& world) {
      const Signals lonely = world.heap().signals(4, "lonely");
      Stream stream = world.make_stream("main");
      if (world.pe() == 0) stream.wait_signal(&lonely.local()[2], 7);
      stream.synchronize();
    });
  } catch (const Timeout& error) {
    const std::string text = error.what();
    problem = text.find("lonely[2]") != std::string::npos ? "" : text;
    std::printf("as it should be: %s\n", text.c_str());
  }
  count_check("a wait that no PE answers", problem);

  problem = "no error";
  try {
    CudaThreads threads(pes, small_world(0.5));
    threads.run([](World& world) {
      CollectiveOptions options;
      options.max_count = 1000;
      options.algorithm = "two_shot";
      const auto plan = make_collective(world, Collective::kAllReduce, options);
      const Symm<std::byte> data = world.heap().allocate<std::byte>(4000, "data");
      Stream stream = world.make_stream("main");
      if (world.pe() != 0) plan->run(stream, data, data, 1000);
      stream.synchronize();
    });
  } catch (const Timeout& error) {
    const std::string text = error.what();
    problem = text.find("arrived") != std::string::npos ? "" : text;
    std::printf("as it should be: %s\n", text.c_str());
  }
  count_check("a call that is missing on one PE", pes > 1 ? problem : "");
  check_stall(pes);
  check(pes, std::vector{RoundsCase{collective_algorithms().front()}});
}

/// Calls with another count on one PE, compared by the host programs or by the GPUs.
void check_other_counts(int pes, bool by_gpus) {
  if (pes == 1) return;
  std::string problem = "no error";
  try {
    CudaOptions options = small_world(10);
    options.compare_calls = !by_gpus;
    options.check_calls = by_gpus;
    CudaThreads threads(pes, options);
    threads.run([](World& world) {
      CollectiveOptions all_reduce;
      all_reduce.max_count = 1000;
      const auto plan = make_collective(world, Collective::kAllReduce, all_reduce);
      const Symm<std::byte> data = world.heap().allocate<std::byte>(4000, "data");
      Stream stream = world.make_stream("main");
      for (int i = 0; i < 10; ++i) plan->run(stream, data, data, 1000);
      plan->run(stream, data, data, world.pe() == world.num_pes() - 1 ? 999 : 1000);
      stream.synchronize();
    });
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    const bool both = text.find("count 999") != std::string::npos && text.find("count 1000") != std::string::npos;
    problem = both ? "" : text;
    std::printf("as it should be: %s\n", text.c_str());
  } catch (const Error& error) {
    problem = error.what();
  }
  count_check(by_gpus ? "another count on one PE, compared by GPUs" : "another count on one PE", problem);
  check(pes, std::vector{RoundsCase{collective_algorithms().front()}});
}

/// One PE's part in a call that differs on the last PE, whose program takes no notice of the error. Returns whether its
/// output is as it was.
bool other_count_untouched(World& world, const AlgorithmInfo& info, std::barrier<>& together) {
  const bool is_wrong = world.pe() == world.num_pes() - 1;
  CollectiveOptions options;
  options.max_count = 1000;
  options.algorithm = info.name;
  const auto plan = make_collective(world, info.collective, options);
  const Size bytes = 4000 * world.num_pes();
  const Symm<std::byte> in = world.heap().allocate<std::byte>(bytes, "in");
  const Symm<std::byte> out = world.heap().allocate<std::byte>(bytes, "out");
  const std::vector<unsigned char> before(static_cast<std::size_t>(bytes), 0x3B);
  world.copy_in(out.local(), before.data(), bytes);
  Stream stream = world.make_stream("main");
  world.barrier();
  if (is_wrong) together.arrive_and_wait();  // the others' kernels wait by now
  std::string error;
  try {
    plan->run(stream, in, out, is_wrong ? 999 : 1000);
    if (!is_wrong) together.arrive_and_wait();
    stream.synchronize();
  } catch (const InvalidArgument& found) {
    error = found.what();
  }
  together.arrive_and_wait();
  // A PE that does not depend on that PE may have ended before.
  if ((is_wrong || !error.empty()) && error.find("count 999") == std::string::npos)
    throw RuntimeFailure("no error about count 999, but: " + error);
  std::vector<unsigned char> after(static_cast<std::size_t>(bytes));
  world.copy_out(after.data(), out.local(), bytes);
  return after == before;
}

/// If a call differs on one PE, that PE's output stays unchanged with every algorithm. For the other PEs' outputs it
/// prints whether they stay unchanged (docs/reference/worlds.md). Copies that are queued in copy engines cannot be held
/// back.
void check_other_counts_untouched(int pes) {
  if (pes == 1) return;
  for (const AlgorithmInfo& info : algorithms(pes)) {
    if (info.by_copy_engine) continue;
    std::string problem;
    std::vector<char> untouched(static_cast<std::size_t>(pes));
    std::barrier together(pes);
    try {
      CudaThreads threads(pes, small_world());
      threads.run([&](World& world) {
        untouched[static_cast<std::size_t>(world.pe())] = other_count_untouched(world, info, together) ? 1 : 0;
      });
    } catch (const std::exception& error) {
      problem = error.what();
    }
    for (int pe = 0; pe < pes && problem.empty(); ++pe)
      if (untouched[static_cast<std::size_t>(pe)] == 0) {
        if (pe == pes - 1) problem = fmt::format("PE {}'s output was written", pe);
        std::printf("another count on PE %d: %s %s wrote to PE %d's output\n", pes - 1, name(info.collective),
                    info.name.c_str(), pe);
      }
    count_check(fmt::format("another count on one PE, {} {}", name(info.collective), info.name), problem);
  }
}

/// A launch that would be refused during a run is refused when the plan is made, on every PE.
void check_refused_plans(int pes) {
  std::vector<AlgorithmInfo> list = algorithms(pes);
  // Never blocks of so many threads.
  std::erase_if(list,
                [](const AlgorithmInfo& info) { return info.name == "grouped" || info.name == "copy_engine_pull"; });
  std::vector<std::atomic<int>> refused(list.size());
  std::string problem;
  try {
    CudaThreads threads(pes, small_world());
    threads.run([&](World& world) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        CollectiveOptions options;
        options.max_count = 1000;
        options.algorithm = list[i].name;
        options.blocks = 4;
        options.threads = 256;
        try {
          make_collective(world, list[i].collective, options);
        } catch (const InvalidArgument&) {
          ++refused[i];
        } catch (const Unsupported&) {  // by algorithms that need wider blocks than these
          ++refused[i];
        }
      }
    });
  } catch (const std::exception& error) {
    problem = error.what();
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    count_check(fmt::format("blocks of 256 threads for {} {}", name(list[i].collective), list[i].name),
                problem.empty() && refused[i] != pes ? fmt::format("refused by {} PEs", refused[i].load()) : problem);
}

int check_all(int replays, int only, bool every) {
  const int devices = cuda_devices();
  if (devices == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto stage = [&](const char* what, int pes) {
    const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - begin;
    std::printf("%s, %d PEs: so far %d passed, %d failed, %.1f s\n", what, pes, passed, failed, so_far.count());
    std::fflush(stdout);
  };
  std::set<int> all{devices, 3, 4, 8};
  if (only > 0) all = {only};
  for (const int pes : all) {
    if (!every) check_each_collective(pes);
    stage("each collective", pes);
    if (pes == devices || pes == 3) {
      check_other_counts_untouched(pes);
      stage("another count on one PE", pes);
    }
    check_large(pes);
    stage("large", pes);
    if (pes != devices) continue;
    constexpr ReduceOp sum[] = {ReduceOp::kSum};
    check_each_algorithm(pes, every ? std::span<const ReduceOp>(kReduceOps) : sum);
    stage("each algorithm", pes);
    check_replays(pes, replays);
    stage("replays", pes);
    check_refused_plans(pes);
    check_timeout(pes);
    for (const bool by_gpus : {false, true}) check_other_counts(pes, by_gpus);
    stage("timeouts", pes);
  }
  return finish();
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const bool every = argc > 3 && std::string_view(argv[3]) == "every";
  return tandem::test::check_all(argc > 1 ? std::atoi(argv[1]) : 10, argc > 2 ? std::atoi(argv[2]) : 0, every);
}
