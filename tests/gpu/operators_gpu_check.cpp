// Overlapped operators on all GPUs of this machine, a PE on each: small integers, so that every element must be exact.
//
//   operators_gpu_check [REPLAYS]     replays of each captured graph, with data that change; default 20

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

#include "gpu/graph.h"
#include "ops/operator_case.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

constexpr int kRuns = 3;
constexpr Size kBytes = Size{64} << 20;

int passed = 0;
int failed = 0;

void report(const std::string& what, const std::string& problem) {
  if (problem.empty()) {
    ++passed;
    return;
  }
  if (++failed <= 40) std::printf("FAILED %s: %s\n", what.c_str(), problem.c_str());
  std::fflush(stdout);
}

std::string describe(const OperatorCase& c) {
  std::ostringstream text;
  text << c << " tile_n=" << c.options.tile_n << (c.options.reduction == Reduction::kChain ? " chain" : "");
  return text.str();
}

/// What all runs give, the same for all cases of a shape.
const std::vector<std::vector<double>>& expected(const OperatorOptions& o) {
  static std::map<std::tuple<Size, Size, Size>, std::vector<std::vector<double>>> known;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& found = known[{o.m, o.n, o.k}];
  if (found.empty()) found = reference(o, kRuns);
  return found;
}

/// Everything that one PE needs for any case.
struct Memory {
  std::byte *a, *b, *c, *idle;
  explicit Memory(World& world)
      : a(world.heap().allocate_local<std::byte>(kBytes, "a")),
        b(world.heap().allocate_local<std::byte>(kBytes, "b")),
        c(world.heap().allocate_local<std::byte>(kBytes, "c")),
        idle(world.heap().allocate_local<std::byte>(2 * kBytes, "idle")) {}
};

/// One PE's part of a case; returns how many elements are wrong.
template <class T>
Size run_case(World& world, Stream& stream, const Memory& memory, const OperatorCase& c, int replays) {
  const OperatorOptions& o = c.options;
  const Shards shards(c.op, o, world.pe(), world.num_pes());
  const auto plan = make_operator(world, c.op, o);
  const auto call = [&] { plan->run(stream, memory.a, memory.b, memory.c); };
  Size wrong = 0;
  const auto round = [&](int number, const auto& go) {
    const int run = number % kRuns;
    std::vector<T> a(static_cast<std::size_t>(shards.a_size()));
    std::vector<T> b(static_cast<std::size_t>(shards.b_size()));
    std::vector<T> got(static_cast<std::size_t>(shards.c_size()), convert<T>(77.0F));
    fill(a.data(), run, 0, shards.a_rows, shards.a_cols);
    fill(b.data(), run, 1, shards.b_rows, shards.b_cols);
    world.copy_in(memory.a, a.data(), shards.a_size() * Size{sizeof(T)});
    world.copy_in(memory.b, b.data(), shards.b_size() * Size{sizeof(T)});
    world.copy_in(memory.c, got.data(), shards.c_size() * Size{sizeof(T)});
    // Some PEs come late.
    for (int i = (number * 3 + world.pe()) % world.num_pes(); i > 0; --i)
      for (int j = 0; j < number % 5; ++j) stream.copy_async(memory.idle, memory.idle + kBytes, kBytes);
    go();
    stream.synchronize();  // no barrier: peers may still be in this run when the inputs change
    world.copy_out(got.data(), memory.c, shards.c_size() * Size{sizeof(T)});
    const std::vector<double>& want = expected(o)[static_cast<std::size_t>(run)];
    for (Size i = 0; i < shards.c_rows.size(); ++i)
      for (Size j = 0; j < shards.c_cols.size(); ++j) {
        const Size at = (shards.c_rows.begin + i) * o.n + shards.c_cols.begin + j;
        wrong += static_cast<double>(convert<float>(got[static_cast<std::size_t>(i * shards.c_cols.size() + j)])) !=
                 want[static_cast<std::size_t>(at)];
      }
  };
  for (int run = 0; run < kRuns; ++run) round(run, call);
  if (replays == 0) return wrong;
  Graph graph(static_cast<cudaStream_t>(stream.native()), [&] { call(); });
  for (int replay = 0; replay < replays; ++replay) round(kRuns + replay, [&] { graph.launch(); });
  return wrong;
}

std::vector<OperatorCase> cases() {
  std::vector<OperatorCase> all;
  struct Shape {
    Size m, n, k;
  };
  int number = 0;
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        for (const Direction direction : {Direction::kPush, Direction::kPull})
          for (const Reduction reduction : {Reduction::kOwner, Reduction::kChain})
            for (const Shape shape : {Shape{1300, 1056, 288}, {300, 1056, 288}, {5, 64, 64}})
              for (const int splits : {1, 3, 8}) {
                const bool chain = reduction == Reduction::kChain;
                if (op == Operator::kGemmAllReduce &&
                    (form == Form::kDecomposed || chain || copy_by == CopyBy::kSm || direction == Direction::kPull))
                  continue;
                if (chain &&
                    (op == Operator::kAllGatherGemm || form != Form::kOverlapped || direction == Direction::kPull))
                  continue;
                OperatorCase c;
                c.op = op;
                c.options.m = shape.m;
                c.options.n = shape.n;
                c.options.k = shape.k;
                c.options.form = form;
                c.options.copy_by = copy_by;
                c.options.direction = direction;
                c.options.reduction = reduction;
                c.options.splits = splits;
                const auto orders = tile_orders(op);
                c.options.order = chain ? "" : orders[static_cast<std::size_t>(number) % orders.size()];
                c.options.type = number % 5 == 1 ? DType::kF16 : DType::kBF16;
                c.options.tile_n = number % 3 == 0 && c.options.type == DType::kBF16 ? 128 : 256;
                ++number;
                all.push_back(c);
              }
  return all;
}

int check_all(int replays) {
  const int pes = cuda_devices();
  if (pes == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  CudaOptions options;
  options.heap_bytes = Size{8} << 30;
  options.timeout_s = 3;
  CudaThreads threads(pes, options);
  std::mutex mutex;
  threads.run([&](World& world) {
    const Memory memory(world);
    Stream stream = world.make_stream("main");
    for (const OperatorCase& c : cases()) {
      Size wrong = 0;
      try {
        wrong = c.options.type == DType::kF16 ? run_case<f16>(world, stream, memory, c, replays)
                                              : run_case<bf16>(world, stream, memory, c, replays);
      } catch (const std::exception& error) {
        std::printf("PE %d in %s: %s\n", world.pe(), describe(c).c_str(), error.what());
        std::fflush(stdout);
        throw;
      }
      {
        const std::lock_guard lock(mutex);
        report(describe(c),
               wrong == 0 ? "" : "PE " + std::to_string(world.pe()) + ": " + std::to_string(wrong) + " wrong");
      }
      world.barrier();
    }
  });
  std::printf("%d PEs: %d passed, %d failed (counted on each PE)\n", pes, passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  try {
    return tandem::test::check_all(argc > 1 ? std::atoi(argv[1]) : 20);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
