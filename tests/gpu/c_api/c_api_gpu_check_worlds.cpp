// The parts of c_api_gpu_check that are about worlds: that split, grow, and end.
#include <chrono>
#include <cstddef>
#include <thread>

#include "gpu/c_api/c_api_joined.h"
#include "gpu/c_api/c_api_parts.h"

namespace tandem::test {

/// Parts of a world work beside it and beside each other, and may go before or after it.
void splits() {
  cudaStream_t stream = nullptr;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 3; ++round) {
    const Joined all;
    const Joined turned(all, 3, -all.pe);
    expect(turned.pe == all.n - 1 - all.pe && turned.n == all.n, "numbers turned round");
    const Joined alone(all, all.pe, 0);
    expect(alone.pe == 0 && alone.n == 1, "a world of one PE");
    tandem_world* none = all.world;
    well(tandem_world_split(&none, all.world, -1, 0, nullptr));
    expect(none == nullptr, "no world for a negative color");
    check_all_reduce(turned, stream);
    check_all_reduce(all, nullptr);
    check_all_reduce(alone, stream);
    check_all_reduce(turned, nullptr);
  }
  cudaStreamDestroy(stream);
}

/// Buffers and plans of more than the heap has at the beginning; what was captured before it grows goes on.
void growth() {
  constexpr size_t megabyte = size_t{1} << 20;
  {
    const Joined all(10, 4 * megabyte);
    const Memory data(Words(1003, 1));
    cudaStream_t stream = nullptr;
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    const auto sum = [&] {
      well(tandem_all_reduce(all.world, data.at(), data.at(), 1003, TANDEM_U32, TANDEM_SUM, stream));
    };
    sum();
    cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    sum();
    cuda(cudaStreamEndCapture(stream, &graph));
    cuda(cudaGraphInstantiate(&made, graph, 0));
    void* large = nullptr;
    well(tandem_alloc(all.world, 300 * megabyte, &large));
    auto* const last = static_cast<unsigned*>(large) + 75 * megabyte - 1003;
    cuda(cudaMemcpy(last, Words(1003, 3).data(), 1003 * 4, cudaMemcpyHostToDevice));
    // Each takes memory of its own.
    for (const tandem_dtype type : {TANDEM_I32, TANDEM_F32, TANDEM_BF16, TANDEM_F64, TANDEM_I64}) {
      well(tandem_all_reduce(all.world, large, large, 16 * megabyte, type, TANDEM_MAX, stream));
      well(tandem_reduce_scatter(all.world, large, static_cast<std::byte*>(large) + 200 * megabyte, megabyte, type,
                                 TANDEM_MAX, stream));
    }
    well(tandem_all_reduce(all.world, last, last, 1003, TANDEM_U32, TANDEM_SUM, stream));
    for (const tandem_operator op : {TANDEM_ALL_GATHER_GEMM, TANDEM_GEMM_REDUCE_SCATTER, TANDEM_GEMM_ALL_REDUCE}) {
      tandem_problem problem{};
      problem.m = 4096;
      problem.n = 2048;
      problem.k = 1024;
      problem.type = TANDEM_BF16;
      problem.num_b = 1;
      tandem_plan* plan = nullptr;
      well(tandem_plan_create(&plan, all.world, op, &problem));
      well(tandem_plan_destroy(plan));
    }
    cuda(cudaGraphLaunch(made, stream));
    well(tandem_synchronize(all.world, stream));
    const auto n = static_cast<unsigned>(all.n);
    Words sums(1003);
    cuda(cudaMemcpy(sums.data(), last, 1003 * 4, cudaMemcpyDeviceToHost));
    expect(sums == Words(1003, 3 * n), "the sum at the end of what has grown");
    expect(data.contents() == Words(1003, n * n), "the sums of a call and of a replay");
    well(tandem_barrier(all.world));
    cudaGraphExecDestroy(made);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
  const Joined all(10, megabyte, megabyte);
  void* large = nullptr;
  refused(tandem_alloc(all.world, 1000 * megabyte, &large), TANDEM_OUT_OF_MEMORY, "no room");
  check_all_reduce(all, nullptr);
}

/// All wait for a message that no PE sends; a thread of the last PE ends that. A PE alone waits for nothing, since a
/// message to itself needs no other PE.
void aborts() {
  {
    const Joined all(60);
    const Memory in(100);
    check_all_reduce(all, nullptr);
    const auto begin = std::chrono::steady_clock::now();
    if (all.n > 1) well(tandem_recv(all.world, in.at(), 100, TANDEM_U32, (all.pe + 1) % all.n, nullptr));
    std::thread other;
    if (all.pe == all.n - 1)
      other = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        well(tandem_world_abort(all.world, "on purpose"));
      });
    if (all.n == 1) other.join();
    refused(tandem_synchronize(all.world, nullptr), TANDEM_FAILED, "aborted: on purpose");
    if (other.joinable()) other.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    expect(took.count() < 10, "an end at once, not after " + std::to_string(took.count()) + " s");
    refused(tandem_world_error(all.world), TANDEM_FAILED, "aborted: on purpose");
    refused(tandem_barrier(all.world), TANDEM_FAILED, "aborted: on purpose");
  }
  check_all_reduce(Joined(), nullptr);
}

}  // namespace tandem::test
