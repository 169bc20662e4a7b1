// Overlapped operators on all GPUs of this machine, a PE on each: a thread or, under `tandem launch`, a process.
//
//   operators_gpu_check [REPLAYS] [GROUP...]    replays of captured graphs, with data that change (default 3); groups
//                                               alone: forms, rows, several, shots, few, deep, bits, finish or layers
//
// Each group is a world of its own, so that one that fails leaves the others alone. PEs also count for themselves.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "gpu/operator_rounds.h"
#include "ops/operator_finish.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

struct Group {
  const char* name;
  std::vector<OperatorCase> cases;
};

struct Tally {
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

constexpr Operator kAllOperators[] = {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce};

/// At least so many columns or so much depth, of which each PE has equal parts with rows of 16 bytes.
Size divisible(Size length) { return round_up(length, Size{8} * cuda_devices()); }

/// What PEs have parts of, n or k, is made `divisible`.
OperatorCase make_case(Operator op, Size m, Size n, Size k, Form form) {
  OperatorCase c;
  c.op = op;
  c.options.m = m;
  c.options.n = op == Operator::kAllGatherGemm ? divisible(n) : n;
  c.options.k = op == Operator::kAllGatherGemm ? k : divisible(k);
  c.options.form = form;
  c.options.use_tuned = false;
  return c;
}

/// Every form, mover, direction, reduction and number of pieces.
std::vector<OperatorCase> forms() {
  std::vector<OperatorCase> all;
  struct Shape {
    Size m, n, k;
  };
  int number = 0;
  for (const Operator op : kAllOperators)
    for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        for (const Direction direction : {Direction::kPush, Direction::kPull})
          for (const Reduction reduction : {Reduction::kOwner, Reduction::kChain})
            for (const Shape shape : {Shape{1300, 1056, 288}, {300, 1056, 288}, {5, 64, 64}})
              for (const int splits : {1, 3, 8}) {
                const bool chain = reduction == Reduction::kChain;
                if (op == Operator::kGemmAllReduce &&
                    (form == Form::kDecomposed || !chain || copy_by == CopyBy::kSm || direction == Direction::kPull))
                  continue;
                if (chain && op == Operator::kGemmReduceScatter && form != Form::kOverlapped) continue;
                if (chain && (op == Operator::kAllGatherGemm || direction == Direction::kPull)) continue;
                OperatorCase c = make_case(op, shape.m, shape.n, shape.k, form);
                c.options.copy_by = copy_by;
                c.options.direction = direction;
                c.options.reduction = reduction;
                c.options.splits = splits;
                if (op == Operator::kGemmAllReduce && form == Form::kOverlapped) c.options.shots = 2;
                const auto orders = tile_orders(op);
                c.options.order = chain ? "" : orders[static_cast<std::size_t>(number) % orders.size()];
                c.options.type = number % 5 == 1 ? DType::kF16 : DType::kBF16;
                c.options.tile_n = number % 3 == 0 && c.options.type == DType::kBF16 ? 128 : 256;
                ++number;
                all.push_back(c);
              }
  return all;
}

/// Runs of one, of an odd number and of all rows by one plan; what the plan takes by itself among them.
std::vector<OperatorCase> rows() {
  std::vector<OperatorCase> all;
  for (const Operator op : kAllOperators)
    for (const Form form : {Form::kSuitable, Form::kOverlapped, Form::kSequential, Form::kDecomposed})
      for (const Size m : {1300, 999, 17})
        for (int i = 0; i < 4; ++i) {
          OperatorCase c = make_case(op, m, 1056, 288, form);
          if (op == Operator::kGemmAllReduce && form == Form::kDecomposed) continue;
          if (form != Form::kSuitable) {
            c.options.copy_by = i % 2 == 0 ? CopyBy::kCopyEngine : CopyBy::kSm;
            if (op == Operator::kGemmReduceScatter) c.options.reduction = i < 2 ? Reduction::kChain : Reduction::kOwner;
            if (op == Operator::kAllGatherGemm && i >= 2) c.options.direction = Direction::kPull;
            if (op == Operator::kGemmAllReduce && form == Form::kOverlapped) c.options.shots = 2;
            c.options.splits = 1 + i;
          }
          c.fewer_rows = true;
          all.push_back(c);
        }
  return all;
}

/// Several B for one gather.
std::vector<OperatorCase> several() {
  std::vector<OperatorCase> all;
  for (const Form form : {Form::kSuitable, Form::kOverlapped, Form::kSequential, Form::kDecomposed})
    for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
      for (const Direction direction : {Direction::kPush, Direction::kPull}) {
        OperatorCase c = make_case(Operator::kAllGatherGemm, 1300, 1056, 288, form);
        c.options.ns = {divisible(512), divisible(64), divisible(480)};
        c.options.n = std::accumulate(c.options.ns.begin(), c.options.ns.end(), Size{0});
        if (form != Form::kSuitable) c.options.copy_by = copy_by;
        c.options.direction = direction;
        c.options.splits = 3;
        c.fewer_rows = true;
        all.push_back(c);
      }
  return all;
}

/// gemm_all_reduce whose owners add up, and in the plan's own choice of shots.
std::vector<OperatorCase> shots() {
  std::vector<OperatorCase> all;
  for (const Form form : {Form::kOverlapped, Form::kDecomposed})
    for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
      for (const Direction direction : {Direction::kPush, Direction::kPull})
        for (const int sms : {0, 4})
          for (const int splits : {1, 4}) {
            OperatorCase c = make_case(Operator::kGemmAllReduce, 1300, 1056, 288, form);
            c.options.reduction = Reduction::kOwner;
            c.options.shots = 2;
            c.options.copy_by = copy_by;
            c.options.direction = direction;
            c.options.communication_sms = sms;
            c.options.splits = splits;
            c.options.order = splits == 1 ? "peers_first" : "";
            c.fewer_rows = sms == 4;
            all.push_back(c);
          }
  return all;
}

/// gemm_all_reduce of so few rows, and so many columns, that the GEMM adds up.
std::vector<OperatorCase> few() {
  std::vector<OperatorCase> all;
  const auto add = [&](Form form, Size m, Size n, Size of_pe = 256) {
    OperatorCase c = make_case(Operator::kGemmAllReduce, m, n, of_pe * cuda_devices(), form);
    c.fewer_rows = true;
    all.push_back(c);
  };
  for (const Form form : {Form::kSuitable, Form::kOverlapped})
    for (const Size m : {64, 48, 33, 17, 1})
      add(form, m, m == 17 ? 8200 : 8192, m > 32 ? 256 : 264);  // 264: the last step of the kernel is cut
  // Of more rows blocks compute slices; some of these end within a tile.
  add(Form::kSuitable, 256, 8192);
  add(Form::kSuitable, 65, 8072);
  add(Form::kOverlapped, 211, 8072);
  add(Form::kOverlapped, 128, 8192);
  return all;
}

/// Deep enough for the last tiles' depth to be shared; all_gather_gemm alone rounds but once.
std::vector<OperatorCase> deep() {
  std::vector<OperatorCase> all;
  for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
    for (const int tile_n : {256, 192, 128}) {
      OperatorCase c = make_case(Operator::kAllGatherGemm, 300, 1056, 4096, Form::kOverlapped);
      c.options.copy_by = copy_by;
      c.options.tile_n = tile_n;
      c.fewer_rows = true;
      all.push_back(c);
    }
  return all;
}

/// For runs whose bits are compared.
std::vector<OperatorCase> bits() {
  std::vector<OperatorCase> all;
  for (const Operator op : kAllOperators) {
    for (const Size m : {1300, 64})
      for (const Form form : {Form::kSuitable, Form::kSequential}) all.push_back(make_case(op, m, 1056, 2080, form));
    if (op == Operator::kGemmAllReduce)
      for (const Size m : {256, 64, 1}) all.push_back(make_case(op, m, 8192, 2080, Form::kSuitable));
    for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
      for (const Reduction reduction : {Reduction::kOwner, Reduction::kChain}) {
        if (op == Operator::kAllGatherGemm && reduction == Reduction::kChain) continue;
        OperatorCase c = make_case(op, 1300, 1056, 2080, Form::kOverlapped);
        c.options.copy_by = copy_by;
        c.options.reduction = reduction;
        c.options.splits = 2;
        if (op == Operator::kGemmAllReduce) c.options.shots = 2;
        all.push_back(c);
        c.options.m = 300;
        c.options.k = Size{3072} * (op == Operator::kAllGatherGemm ? 1 : cuda_devices());  // a shared depth
        all.push_back(c);
      }
  }
  return all;
}

template <class T>
Size run_case(World& world, Stream& stream, const OperatorMemory& memory, const OperatorCase& c, int replays,
              bool only_bits) {
  OperatorRounds<T> rounds(world, stream, memory, c);
  if (!only_bits) return rounds.run(replays);
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

/// gemm_all_reduce whose GEMM adds up, with bias and activation.
std::vector<FinishCase> few_finishes() {
  std::vector<FinishCase> all;
  for (const Size m : {100, 64, 17, 1})
    for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
      FinishCase c;
      c.op = Operator::kGemmAllReduce;
      c.options = {.m = m, .n = 8192, .k = Size{256} * cuda_devices(), .activation = activation, .use_tuned = false};
      c.bias = m != 64;
      all.push_back(c);
    }
  return all;
}

/// Products of a layer by one plan, with a bias and so by the library's GEMM in every form: of some of them blocks
/// compute parts of two tiles, of others many share one, and they follow one another with the same room for sums. Of
/// two rows most PEs have none.
std::vector<FinishCase> layers() {
  std::vector<FinishCase> all;
  const Size pes = cuda_devices();
  for (const Size m : {1500, 2})
    for (const bool by_sm : {true, false})
      for (const Form form : {Form::kSuitable, Form::kSequential}) {
        if (form == Form::kSuitable && !by_sm) continue;  // it chooses
        FinishCase c;
        c.options = {.m = m, .n = 1536 * pes, .k = 4096, .form = form, .use_tuned = false};
        c.options.ns = {1024 * pes, 256 * pes, 256 * pes};
        if (form == Form::kSequential) c.options.copy_by = by_sm ? CopyBy::kSm : CopyBy::kCopyEngine;
        c.bias = true;
        all.push_back(c);
      }
  return all;
}

CudaOptions world_options() {
  CudaOptions options;
  options.heap_bytes = Size{8} << 30;
  options.timeout_s = 3;
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
Size run_finish(World& world, Stream& stream, FinishedOperator& one, Size m, std::byte* idle, int replays) {
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
    if (i == 1)
      for (int which = 0; which < 2; ++which)
        graphs.push_back(std::make_unique<Graph>(native, [&] { one.enqueue(stream, rows(which)); }));
  }
  return wrong;
}

/// Bias, activation, fp8 and layouts.
bool check_finishes(const std::vector<FinishCase>& cases, int pes, int replays, Tally& tally) {
  std::mutex mutex;
  try {
    in_world(pes, [&](World& world) {
      Stream stream = world.make_stream("main");
      constexpr Size kRoom = Size{256} << 20;
      std::byte* const memory = world.heap().allocate_local<std::byte>(kRoom, "matrices");
      std::byte* const idle = world.heap().allocate_local<std::byte>(2 * kIdle, "idle");
      for (const FinishCase& c : cases) {
        std::ostringstream what;
        what << c;
        Size wrong = 0;
        try {
          FinishedOperator one(world, c, memory, kRoom);
          wrong = run_finish(world, stream, one, c.options.m, idle, c.options.m < pes ? 50 * replays : replays);
        } catch (const std::exception& error) {
          std::printf("PE %d in %s: %s\n", world.pe(), what.str().c_str(), error.what());
          std::fflush(stdout);
          throw;
        }
        {
          const std::lock_guard lock(mutex);
          tally.add(what.str(), wrong, world.pe());
        }
        world.barrier();
      }
    });
  } catch (const Error&) {  // said above
    ++tally.failed;
    return false;
  }
  return true;
}

/// The cases of a group in a world of its own. Returns whether the world came to its end.
bool check_group(const Group& group, int pes, int replays, Tally& tally) {
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
          tally.add(describe(c), wrong, world.pe());
        }
        world.barrier();
      }
    });
  } catch (const Error&) {  // said above
    ++tally.failed;
    return false;
  }
  return true;
}

int check_all(int replays, const std::vector<std::string>& only) {
  const int pes = cuda_devices();
  if (pes == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  const std::vector<Group> groups{{"forms", forms()}, {"rows", rows()}, {"several", several()}, {"shots", shots()},
                                  {"few", few()},     {"deep", deep()}, {"bits", bits()}};
  Tally all;
  const auto run = [&](const std::string& name, std::size_t cases, const std::function<bool(Tally&)>& check) {
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) return;
    // PEs hand each other what they found by the memory of a process.
    if (name == "bits" && is_launched()) return;
    const auto begin = std::chrono::steady_clock::now();
    Tally tally;
    const bool ended = check(tally);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s, %zu cases on %d PEs: %d passed, %d failed (counted on each PE)%s, %.0f s\n", name.c_str(), cases,
                pes, tally.passed, tally.failed, ended ? "" : ", broken off", took.count());
    std::fflush(stdout);
    all.passed += tally.passed;
    all.failed += tally.failed;
  };
  for (const Group& group : groups)
    run(group.name, group.cases.size(), [&](Tally& tally) { return check_group(group, pes, replays, tally); });
  // Rows of 16 bytes on each PE, of fp8 and of two B, too.
  auto cases = finish_cases(650, Size{288} * pes, Size{160} * pes, false);
  for (const FinishCase& c : few_finishes()) cases.push_back(c);
  run("finish", cases.size(), [&](Tally& tally) { return check_finishes(cases, pes, replays, tally); });
  run("layers", layers().size(), [&](Tally& tally) { return check_finishes(layers(), pes, replays, tally); });
  std::printf("%d passed, %d failed\n", all.passed, all.failed);
  return all.failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  try {
    return tandem::test::check_all(argc > 1 ? std::atoi(argv[1]) : 3, {argv + std::min(argc, 2), argv + argc});
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
