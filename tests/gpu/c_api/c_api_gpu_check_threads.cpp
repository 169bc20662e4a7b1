// The parts of c_api_gpu_check that are about threads and streams of the caller's.
#include <exception>
#include <string>
#include <thread>

#include "gpu/c_api/c_api_joined.h"
#include "gpu/c_api/c_api_parts.h"

namespace tandem::test {

namespace {

/// Whether this process has started a GPU.
bool is_started(int device) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  cuda(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &function, 12000, cudaEnableDefault, &found));
  unsigned flags = 0;
  int active = 0;
  expect(reinterpret_cast<int (*)(int, unsigned*, int*)>(function)(device, &flags, &active) == 0, "the GPU's state");
  return active != 0;
}

int current() {
  int device = -1;
  cuda(cudaGetDevice(&device));
  return device;
}

/// In a thread to which CUDA gives GPU 0, where the world's is another one.
void calls_beside_their_gpu(const Joined& all, const Memory& data) {
  expect(current() == 0, "a thread begins with GPU 0");
  well(tandem_all_reduce(all.world, data.at(), data.at(), 1003, TANDEM_U32, TANDEM_SUM, nullptr));
  well(tandem_synchronize(all.world, nullptr));
  void* more = nullptr;
  well(tandem_alloc(all.world, size_t{1} << 20, &more));
  tandem_problem problem{};
  problem.m = problem.n = problem.k = 256;
  problem.type = TANDEM_BF16;
  tandem_plan* plan = nullptr;
  well(tandem_plan_create(&plan, all.world, TANDEM_GEMM_ALL_REDUCE, &problem));
  const auto part = static_cast<std::byte*>(more);
  const void* const b = part + (size_t{256} << 10);
  void* const c = part + (size_t{512} << 10);
  for (int run = 0; run < 3; ++run) well(tandem_plan_run(plan, 256, part, &b, &c, nullptr));
  well(tandem_synchronize(all.world, nullptr));
  well(tandem_plan_destroy(plan));
  well(tandem_free(all.world, more));
  expect(current() == 0, "its GPU as before");
}

}  // namespace

void other_threads() {
  Joined all;
  const Memory data(Words(1003, static_cast<unsigned>(all.pe) + 1));
  cuda(cudaDeviceSynchronize());
  const bool was_started = is_started(0);
  std::string failure;
  std::thread([&] {
    try {
      calls_beside_their_gpu(all, data);
      expect(is_started(0) == was_started, "no unused GPU started");
      well(tandem_world_destroy(all.world));
      all.world = nullptr;
      expect(current() == 0, "its GPU as before, behind the world");
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }).join();
  if (!failure.empty()) throw std::runtime_error(failure);
  expect(data.contents() == Words(1003, static_cast<unsigned>(all.n * (all.n + 1) / 2)), "the sum");
}

/// Streams that are destroyed or captured behind their calls, and branches of one graph.
void streams_that_go() {
  const Joined all;
  const auto n = static_cast<unsigned>(all.n);
  const auto make = [] {
    cudaStream_t stream = nullptr;
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  };
  cudaStream_t last = make();
  for (int i = 0; i < 20; ++i) {
    cudaStream_t stream = make();
    check_all_reduce(all, stream);
    cuda(cudaStreamDestroy(stream));
    check_all_reduce(all, last);
  }
  const Memory captured(Words(1003, 1)), plain(Words(1003, 1));
  const auto sum = [&](const Memory& data, cudaStream_t stream) {
    well(tandem_all_reduce(all.world, data.at(), data.at(), 1003, TANDEM_U32, TANDEM_SUM, stream));
  };
  cudaStream_t first = make(), second = make();
  cudaEvent_t fork = nullptr, join = nullptr;
  for (cudaEvent_t* const event : {&fork, &join}) cuda(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  sum(plain, first);
  cuda(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  sum(captured, first);
  sum(plain, last);
  cuda(cudaEventRecord(fork, first));
  cuda(cudaStreamWaitEvent(second, fork));
  sum(captured, second);
  sum(captured, first);
  cuda(cudaEventRecord(join, second));
  cuda(cudaStreamWaitEvent(first, join));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  cuda(cudaStreamEndCapture(first, &graph));
  cuda(cudaGraphInstantiate(&made, graph, 0));
  well(tandem_synchronize(all.world, last));
  expect(plain.contents() == Words(1003, n * n), "two plain calls, one of them during a capture");
  cuda(cudaGraphLaunch(made, first));
  well(tandem_synchronize(all.world, first));
  expect(captured.contents() == Words(1003, n * n * n), "three calls in two branches of a graph");
  well(tandem_barrier(all.world));
  cudaGraphExecDestroy(made);
  cudaGraphDestroy(graph);
  for (cudaEvent_t const event : {fork, join}) cudaEventDestroy(event);
  for (cudaStream_t const stream : {first, second, last}) cudaStreamDestroy(stream);
}

}  // namespace tandem::test
