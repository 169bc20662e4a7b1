// Checks the collectives on the GPUs that it finds. Prints what fails, and "N passed, N failed"; exit code 1 if
// anything failed.
//
//   collectives_gpu_check [REPLAYS [PES]]      replays of each algorithm's captured graph (100); only so many PEs

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "gpu/collective_rounds.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

int passed = 0;
int failed = 0;

void report(const std::string& what, const std::string& problem) {
  if (problem.empty()) {
    ++passed;
    return;
  }
  ++failed;
  std::printf("FAILED %s: %s\n", what.c_str(), problem.c_str());
  std::fflush(stdout);
}

CudaOptions small_world(double timeout_s = 10) {
  CudaOptions options;
  options.heap_bytes = Size{256} << 20;
  options.timeout_s = timeout_s;
  return options;
}

/// All PEs' results together.
std::vector<GpuResult> run_in_one_world(int pes, const std::vector<GpuCase>& cases) {
  std::vector<GpuResult> results(cases.size());
  std::mutex mutex;
  CudaThreads threads(pes, small_world());
  threads.run([&](World& world) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const GpuResult own =
          dispatch(cases[i].type, [&]<class T>() { return CollectiveRounds<T>(world, cases[i]).run(); });
      const std::lock_guard lock(mutex);
      GpuResult& all = results[i];
      all.checked += own.checked;
      if (all.wrong == 0) all.first_wrong = own.first_wrong;
      all.wrong += own.wrong;
      all.hash += own.hash;
    }
  });
  return results;
}

void check(int pes, const std::vector<GpuCase>& cases, bool twice = false) {
  try {
    const std::vector<GpuResult> results = run_in_one_world(pes, cases);
    const std::vector<GpuResult> again = twice ? run_in_one_world(pes, cases) : results;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      std::string problem;
      if (results[i].wrong > 0)
        problem =
            fmt::format("{} of {} wrong, first: {}", results[i].wrong, results[i].checked, results[i].first_wrong);
      else if (results[i].hash != again[i].hash)
        problem = "two runs differ";
      report(describe(cases[i], pes), problem);
    }
  } catch (const std::exception& error) {
    report(describe(cases.front(), pes) + fmt::format(" and {} more", cases.size() - 1), error.what());
  }
}

/// Those that this machine can run: all but what needs multicast.
std::vector<AlgorithmInfo> algorithms() {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms())
    if (info.name != "multimem") list.push_back(info);
  return list;
}

bool can_be_in_place(Collective collective) {
  return collective != Collective::kAllToAll && collective != Collective::kSendRecv &&
         collective != Collective::kExchange;
}

/// Blocks that leave room for all PEs that share a GPU; 0: the plan's choice.
int blocks_for(int pes) { return pes > cuda_devices() ? 4 : 0; }

void add(std::vector<GpuCase>& cases, GpuCase c, int pes) {
  c.blocks = blocks_for(pes);
  cases.push_back(c);
  if (!can_be_in_place(c.algorithm.collective)) return;
  c.in_place = true;
  cases.push_back(c);
}

/// Every algorithm x type x operation x odd sizes x in-place.
void check_everything(int pes, bool all_types) {
  for (const AlgorithmInfo& info : algorithms())
    for (const DType type : kDTypes) {
      if (!all_types && type != DType::kBF16 && type != DType::kF32) continue;
      std::vector<GpuCase> cases;
      for (const ReduceOp op : kReduceOps) {
        if (!reduces(info.collective) && op != ReduceOp::kSum) continue;
        for (const Size count : {Size{1}, Size{1003}, Size{20011}}) {
          GpuCase c{info, type, op, count};
          c.root = count == 1003 ? pes - 1 : 0;
          add(cases, c, pes);
        }
        if (op == ReduceOp::kSum) {
          GpuCase random{info, type, op, 3001};
          random.random = true;
          add(cases, random, pes);
        }
      }
      check(pes, cases);
    }
}

void check_large(int pes) {
  std::vector<GpuCase> cases;
  for (const AlgorithmInfo& info : algorithms()) {
    cases.clear();
    add(cases, {info, DType::kBF16, ReduceOp::kSum, (Size{1} << 19) + 5}, pes);
    check(pes, cases);
  }
}

void check_replays(int pes, int replays) {
  for (const AlgorithmInfo& info : algorithms()) {
    GpuCase c{info, DType::kBF16, ReduceOp::kSum, 4099};
    c.graph = true;
    c.rounds = replays;
    c.blocks = blocks_for(pes);
    GpuCase random = c;
    random.random = true;
    random.rounds = 5;
    check(pes, {c, random}, true);
  }
}

/// A wait that nobody answers ends with an error that names the signal, and the process goes on.
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
  report("a wait that nobody answers", problem);

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
  report("a call that is missing on one PE", pes > 1 ? problem : "");
  check(pes, {GpuCase{collective_algorithms().front()}});
}

int check_all(int replays, int only) {
  const int devices = cuda_devices();
  if (devices == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  const auto stage = [](const char* what, int pes) {
    std::printf("%s, %d PEs: so far %d passed, %d failed\n", what, pes, passed, failed);
    std::fflush(stdout);
  };
  std::set<int> shared{3, 4, 8};
  shared.erase(devices);
  if (only == 0 || only == devices) {
    check_timeout(devices);
    stage("timeouts", devices);
    check_large(devices);
    stage("large", devices);
    check_replays(devices, replays);
    stage("replays", devices);
    check_everything(devices, true);
    stage("everything", devices);
  }
  for (const int pes : shared) {
    if (only != 0 && only != pes) continue;
    check_everything(pes, false);
    stage("everything", pes);
    check_replays(pes, replays / 5);
    stage("replays", pes);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  return tandem::test::check_all(argc > 1 ? std::atoi(argv[1]) : 100, argc > 2 ? std::atoi(argv[2]) : 0);
}
