// Overlapped operators on all GPUs of this machine, a PE on each: a thread or, under `tandem launch`, a process.
//
//   operators_gpu_check [--pes N] [REPLAYS] [GROUP...]
//
// N: PEs, threads that share GPUs where there are fewer of those; then SMs move everything. Processes share GPUs with
// TANDEM_SHARE_GPU=1. REPLAYS: of captured graphs, with data that change (default 3). Groups alone: forms, rows,
// several, shots, few, deep, waves, bits, finish, layers or together.
//
// Each group is a world of its own, so that one that fails leaves the others alone. PEs also count for themselves.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/graph.h"
#include "gpu/layers/layers_rounds.h"
#include "support/operator_round_cases.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

struct Group {
  const char* name;
  std::vector<OperatorCase> cases;
};

struct Verification {
  int passed = 0, failed = 0;

  void add(const std::string& what, Size wrong, int pe) {
    if (wrong == 0) {
      ++passed;
      return;
    }
    if (++failed <= 40) std::printf("FAILED %s: PE %d: %lld wrong\n", what.c_str(), pe, static_cast<long long>(wrong));
    std::fflush(stdout);
  }
};

constexpr Size kIdle = Size{32} << 20;  // bytes that a PE copies to be late

template <class T>
Size run_case(World& world, Stream& stream, const OperatorMemory& memory, const OperatorCase& c, int replays,
              bool only_bits) {
  OperatorRounds<T> rounds(world, stream, memory, c);
  if (!only_bits) return rounds.run(replays, capture_graph);
  return rounds.differing_bits(5, [&](std::uint64_t hash) {
    static std::mutex mutex;
    static std::uint64_t first = 0;
    world.barrier();
    if (world.pe() == 0) first = hash;
    world.barrier();
    const std::lock_guard lock(mutex);
    return first == hash;
  });
}

CudaOptions world_options() {
  CudaOptions options;
  options.heap_bytes = Size{8} << 30;
  options.timeout_s = options.arrival_timeout_s = 3;
  return options;
}

bool is_launched() { return std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr; }

/// A world of its own for `program`, on this process's PE or on all.
void in_world(int pes, const std::function<void(World&)>& program) {
  if (is_launched())
    program(CudaProcess(placement_from_environment(), world_options()).world());
  else
    CudaThreads(pes, world_options()).run(program);
}

/// Wrong elements in runs, and in `replays` of graphs of all rows and of fewer, with data that change and PEs that
/// begin late.
Size run_epilogue(World& world, Stream& stream, OperatorWithEpilogue& one, Size m, std::byte* idle, int replays) {
  const auto native = static_cast<cudaStream_t>(stream.native());
  const auto rows = [&](int i) { return i % 2 == 0 ? m : 2 * m / 3 | 1; };
  std::vector<std::unique_ptr<Graph>> graphs;
  Size wrong = 0;
  for (int i = 0; i < 2 + replays; ++i) {
    one.fill(i, rows(i));
    for (int j = (i * 3 + world.pe()) % world.num_pes(); j > 0; --j) stream.copy_async(idle, idle + kIdle, kIdle);
    if (i < 2)
      one.enqueue(stream, rows(i));
    else
      graphs[static_cast<std::size_t>(i % 2)]->launch();
    stream.synchronize();
    wrong += one.wrong(i, rows(i));
    if (i != 1) continue;
    for (int which = 0; which < 2; ++which)
      graphs.push_back(std::make_unique<Graph>(native, [&] { one.enqueue(stream, rows(which)); }));
    world.barrier();  // making a graph may wait for the kernels of other PEs on the same GPU
  }
  return wrong;
}

/// Bias, activation, fp8 and layouts.
bool check_epilogues(const std::vector<EpilogueCase>& cases, int pes, int replays, Verification& verification) {
  std::mutex mutex;
  try {
    in_world(pes, [&](World& world) {
      Stream stream = world.make_stream("main");
      constexpr Size kRoom = Size{256} << 20;
      std::byte* const memory = world.heap().allocate_local<std::byte>(kRoom, "matrices");
      std::byte* const idle = world.heap().allocate_local<std::byte>(2 * kIdle, "idle");
      for (const EpilogueCase& c : cases) {
        std::ostringstream what;
        what << c;
        Size wrong = 0;
        try {
          OperatorWithEpilogue one(world, c, memory, kRoom);
          wrong = run_epilogue(world, stream, one, c.options.m, idle, c.options.m < pes ? 50 * replays : replays);
        } catch (const std::exception& error) {
          std::printf("PE %d in %s: %s\n", world.pe(), what.str().c_str(), error.what());
          std::fflush(stdout);
          throw;
        }
        {
          const std::lock_guard lock(mutex);
          verification.add(what.str(), wrong, world.pe());
        }
        world.barrier();
      }
    });
  } catch (const Error&) {  // said above
    ++verification.failed;
    return false;
  }
  return true;
}

/// The cases of a group in a world of its own. Returns whether the world came to its end.
bool check_group(const Group& group, int pes, int replays, Verification& verification) {
  std::mutex mutex;
  try {
    in_world(pes, [&](World& world) {
      const OperatorMemory memory(world);
      Stream stream = world.make_stream("main");
      for (const OperatorCase& c : group.cases) {
        const bool only_bits = std::string(group.name) == "bits";
        Size wrong = 0;
        try {
          wrong = c.options.type == DType::kF16 ? run_case<f16>(world, stream, memory, c, replays, only_bits)
                                                : run_case<bf16>(world, stream, memory, c, replays, only_bits);
        } catch (const std::exception& error) {
          std::printf("PE %d in %s: %s\n", world.pe(), describe(c).c_str(), error.what());
          std::fflush(stdout);
          throw;
        }
        {
          const std::lock_guard lock(mutex);
          verification.add(describe(c), wrong, world.pe());
        }
        world.barrier();
      }
    });
  } catch (const Error&) {  // said above
    ++verification.failed;
    return false;
  }
  return true;
}

/// Layers of several plans, whose runs follow each other.
bool check_together(const std::vector<LayersCase>& cases, int pes, int replays, Verification& verification) {
  std::mutex mutex;
  try {
    in_world(pes, [&](World& world) {
      Stream stream = world.make_stream("main");
      std::byte* const idle = world.heap().allocate_local<std::byte>(2 * kIdle, "idle");
      for (const LayersCase& c : cases) {
        Size wrong = 0;
        try {
          wrong = differing_layers(world, stream, c, idle, kIdle, 5 * replays);
        } catch (const std::exception& error) {
          std::printf("PE %d in layers, %s: %s\n", world.pe(), c.name.c_str(), error.what());
          std::fflush(stdout);
          throw;
        }
        {
          const std::lock_guard lock(mutex);
          verification.add("layers, " + c.name, wrong, world.pe());
        }
        world.barrier();
      }
    });
  } catch (const Error&) {  // said above
    ++verification.failed;
    return false;
  }
  return true;
}

int check_all(int pes, int replays, const std::vector<std::string>& only) {
  const int gpus = cuda_devices();
  if (gpus == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  if (pes == 0) pes = is_launched() ? std::atoi(std::getenv("WORLD_SIZE")) : gpus;
  const bool is_shared = pes > gpus;
  const auto at_once = is_launched() ? Size{1} : ceil_div(pes, gpus);  // processes on one GPU take turns
  const OperatorRoundCases cases(pes, static_cast<int>(at_once));
  std::vector<Group> groups{{"forms", cases.forms()}, {"rows", cases.rows()}, {"several", cases.several()},
                            {"shots", cases.shots()}, {"few", cases.few()},   {"deep", cases.deep()},
                            {"waves", cases.waves()}, {"bits", cases.bits()}};
  // Nothing promises that copies of PEs that share a GPU do not stand behind each other, or behind kernels.
  const auto leave_out_copy_engines = [&](auto& some) {
    if (is_shared) std::erase_if(some, [](const auto& c) { return c.options.copy_by == CopyBy::kCopyEngine; });
  };
  for (Group& group : groups) leave_out_copy_engines(group.cases);
  Verification all;
  const auto run = [&](const std::string& name, std::size_t count, const std::function<bool(Verification&)>& check) {
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) return;
    // PEs hand each other what they found by the memory of a process.
    if (name == "bits" && is_launched()) return;
    const auto begin = std::chrono::steady_clock::now();
    Verification verification;
    const bool ended = check(verification);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s, %zu cases on %d PEs: %d passed, %d failed (counted on each PE)%s, %.0f s\n", name.c_str(), count,
                pes, verification.passed, verification.failed, ended ? "" : ", broken off", took.count());
    std::fflush(stdout);
    all.passed += verification.passed;
    all.failed += verification.failed;
  };
  for (const Group& group : groups)
    run(group.name, group.cases.size(),
        [&](Verification& verification) { return check_group(group, pes, replays, verification); });
  const auto run_epilogues = [&](const std::string& name, const std::vector<EpilogueCase>& epilogues) {
    run(name, epilogues.size(),
        [&](Verification& verification) { return check_epilogues(epilogues, pes, replays, verification); });
  };
  // Rows of 16 bytes on each PE, of fp8 and of two B, too.
  auto epilogues = epilogue_cases(650, Size{288} * pes, Size{160} * pes, false);
  for (const EpilogueCase& c : cases.few_epilogues()) epilogues.push_back(c);
  for (const EpilogueCase& c : block_scale_cases(300, Size{320} * pes, Size{144} * pes)) epilogues.push_back(c);
  auto layers = cases.layers();
  leave_out_copy_engines(epilogues);
  leave_out_copy_engines(layers);
  run_epilogues("finish", epilogues);
  run_epilogues("layers", layers);
  const auto together = layers_cases(!is_shared);
  run("together", together.size(),
      [&](Verification& verification) { return check_together(together, pes, replays, verification); });
  std::printf("%d passed, %d failed\n", all.passed, all.failed);
  return all.failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  int pes = 0, replays = 3;
  if (!arguments.empty() && arguments[0] == "--pes") {
    pes = arguments.size() > 1 ? std::atoi(arguments[1].c_str()) : 0;
    if (pes < 1 || tandem::test::is_launched()) {
      std::printf("--pes: 1 or more PEs are needed, which are threads\n");
      return 2;
    }
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (!arguments.empty()) {
    replays = std::atoi(arguments[0].c_str());
    arguments.erase(arguments.begin());
  }
  try {
    return tandem::test::check_all(pes, replays, arguments);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
