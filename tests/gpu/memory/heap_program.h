#pragma once
/// Requirements of a world's heap on GPUs, for PEs that are threads or processes. Freed buffers make room. Growth
/// serves every kind of transport and keeps captured graphs valid. Exhaustion is an error.

#include "gpu/processes/process_peer.h"
#include "tandem/error.h"
#include "tandem/operators.h"

namespace tandem::test {

inline CudaOptions growing_world() {
  CudaOptions options = small_world();
  options.heap_bytes = Size{64} << 20;
  options.heap_limit_bytes = Size{1} << 30;
  return options;
}

/// A captured all-reduce of ones, as often as wanted: how many elements are wrong.
class CapturedSum {
 public:
  explicit CapturedSum(World& world)
      : world_(world),
        plan_(make_collective(world, Collective::kAllReduce, {.max_count = kCount})),
        in_(world.heap().allocate<float>(kCount, "captured in")),
        out_(world.heap().allocate<float>(kCount, "captured out")),
        stream_(world.make_stream("captured")) {
    const std::vector<float> ones(kCount, 1);
    world.copy_in(in_.local(), ones.data(), kCount * Size{sizeof(float)});
    graph_ = std::make_unique<Graph>(static_cast<cudaStream_t>(stream_.native()), [&] {
      plan_->run(stream_, in_.as<const std::byte>(), out_.as<std::byte>(), kCount);
    });
    world.barrier();
  }

  Size wrong() {
    graph_->launch();
    stream_.synchronize();
    std::vector<float> got(kCount);
    world_.copy_out(got.data(), out_.local(), kCount * Size{sizeof(float)});
    world_.barrier();
    return std::count_if(got.begin(), got.end(), [&](float x) { return x != static_cast<float>(world_.num_pes()); });
  }

 private:
  static constexpr Size kCount = 5000;

  World& world_;
  std::unique_ptr<CollectivePlan> plan_;
  Symm<float> in_, out_;
  Stream stream_;
  std::unique_ptr<Graph> graph_;
};

/// Plans that need more memory together than there is, one after the other, and one that can never be made.
inline void check_plans_that_go(World& world) {
  CollectiveOptions options{.type = DType::kF32, .max_count = Size{8} << 20};
  options.algorithm = "two_shot_ll128";
  OperatorOptions layer;
  layer.m = 2048 * world.num_pes();
  layer.n = 16384;
  layer.k = 64 * world.num_pes();
  OperatorOptions too_large = layer;
  too_large.m *= 16;
  Stream stream = world.make_stream("plans that go");
  const auto in = world.heap().allocate<float>(1000, "in of plans that go");
  const auto out = world.heap().allocate<float>(1000, "out of plans that go");
  const std::vector<float> ones(1000, 1);
  world.copy_in(in.local(), ones.data(), Size{1000} * Size{sizeof(float)});
  for (int i = 0; i < 12; ++i) {
    if (world.num_pes() > 1)  // rows of one PE alone take no memory
      error_of<OutOfMemory>([&] { make_operator(world, Operator::kGemmAllReduce, too_large); });
    const auto other = make_operator(world, Operator::kGemmReduceScatter, layer);
    const auto plan = make_collective(world, Collective::kAllReduce, options);
    plan->run(stream, in.as<const std::byte>(), out.as<std::byte>(), 1000);
    stream.synchronize();
    std::vector<float> got(1000);
    world.copy_out(got.data(), out.local(), Size{1000} * Size{sizeof(float)});
    for (const float x : got) expect(x == static_cast<float>(world.num_pes()), "a right sum of a plan in used memory");
  }
}

inline void check_heap(World& world) {
  SymmetricHeap& heap = world.heap();
  constexpr Size most = Size{48} << 20;  // of the heap as it is at the beginning, but not twice
  CapturedSum captured(world);
  expect(captured.wrong() == 0, "a right sum");
  for (int i = 0; i < 20; ++i) {
    const auto data = heap.allocate<std::byte>(most, "freed data");
    const auto signals = heap.signals(1000, "freed signals");
    std::byte* const own = heap.allocate_local<std::byte>(Size{1} << 20, "freed own");
    Signal last{};
    world.copy_out(&last, signals.local() + 999, sizeof last);
    expect(last.value == 0, "signals that start as zeros");
    last.value = 7;
    world.copy_in(signals.local() + 999, &last, sizeof last);
    heap.free(data);
    heap.free(signals);
    heap.free_local(own);
  }
  const auto all = heap.allocate<std::byte>(most, "all");
  const auto behind = heap.allocate<std::byte>(most, "behind");
  expect(behind.local() - all.local() > most, "growth");
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (info.name == "multimem" || (info.by_copy_engine && world.num_pes() > cuda_devices())) continue;
    RoundsCase c{info, DType::kF32, ReduceOp::kSum, 20'003};
    if (world.num_pes() > cuda_devices()) c.blocks = 4;
    check_case(world, c);
  }
  expect(captured.wrong() == 0, "a right sum of the graph that was captured before");
  const std::string error = error_of<OutOfMemory>([&] { heap.allocate<std::byte>(Size{2} << 30, "too large"); });
  expect(contains(error, "2147483648 bytes asked"), "not: " + error);
  heap.free(all);
  expect(heap.allocate<std::byte>(most, "again").local() == all.local(), "what was freed");
  error_of<InvalidArgument>([&] { heap.free(behind + 1); });
  check_plans_that_go(world);
}

}  // namespace tandem::test
