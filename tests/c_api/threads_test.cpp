// Other threads: calls where another GPU is current, and queries of a world while it is destroyed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "../../bindings/c/guard.h"
#include "c_api/simulated/memory.h"

namespace tandem::test {
namespace {

using ::testing::Each;

/// Runs a program on one PE, whose GPU is 1, while GPU 0 is current.
void run_beside_its_gpu(const std::function<void(CPeer&)>& program) {
  const auto beside = [&](CPeer& peer) {
    current_gpu() = 0;
    program(peer);
    current_gpu() = 1;
  };
  run_in_c(1, beside, {.first_gpu = 1});
}

TEST(CurrentGpu, IsTheWorldsInEveryCall) {
  run_beside_its_gpu([](CPeer& peer) {
    const Memory in(peer, true, words(0, 0, 64));
    const Memory out(peer, false, Words(64));
    tandem_world* const w = peer.world;
    void* const s = peer.stream;
    void* const x = in.at();
    void* const y = out.at();
    void* memory = nullptr;
    const size_t count = 64, offset = 0;
    const auto u32 = TANDEM_U32;
    const tandem_message to{x, count, u32, 0}, from{y, count, u32, 0};
    tandem_plan* plan = nullptr;
    const tandem_problem problem{.m = 16, .n = 16, .k = 16, .type = TANDEM_BF16};
    const std::vector<std::function<tandem_status()>> calls{
        [&] { return tandem_alloc(w, 64, &memory); },
        [&] { return tandem_free(w, memory); },
        [&] { return tandem_all_reduce(w, x, y, count, u32, TANDEM_SUM, s); },
        [&] { return tandem_send_recv(w, &to, 1, &from, 1, s); },
        [&] { return tandem_all_gather_v(w, x, y, &count, &offset, u32, s); },
        [&] { return tandem_all_to_all_v(w, x, &count, &offset, y, &count, &offset, u32, s); },
        [&] { return tandem_plan_create(&plan, w, TANDEM_ALL_GATHER_GEMM, &problem); },
        [&] { return tandem_plan_run(plan, 0, x, &x, &y, s); },
        [&] { return tandem_plan_destroy(plan); },
        [&] { return tandem_synchronize(w, s); },
        [&] { return tandem_barrier(w); },
        [&] { return tandem_barrier_on(w, s); },
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
      gpus_used().clear();
      EXPECT_EQ(unlike(calls[i](), TANDEM_SUCCESS), "") << i;
      EXPECT_THAT(gpus_used(), Each(1)) << i;
      EXPECT_EQ(current_gpu(), 0) << i;
    }
  });
}

TEST(Destroying, AnswersOtherThreadsUntilItsWaitsAreOver) {
  run_in_c(1, [](CPeer& peer) {
    int calls = 0;
    const auto other_thread = [&] {
      ++calls;
      EXPECT_EQ(unlike(tandem_world_error(peer.world), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_world_abort(peer.world, "a peer hangs"), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(error_of(peer.world), TANDEM_FAILED, "aborted: a peer hangs"), "");
      EXPECT_EQ(unlike(tandem_world_destroy(peer.world), TANDEM_INVALID_ARGUMENT, "made and not destroyed"), "");
      EXPECT_EQ(unlike(tandem_barrier(peer.world), TANDEM_INVALID_ARGUMENT, "made and not destroyed"), "");
    };
    waits_for_gpu() = [&] { std::thread(other_thread).join(); };
    EXPECT_EQ(unlike(tandem_world_destroy(peer.world), TANDEM_SUCCESS), "");
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(unlike(tandem_world_abort(peer.world, "late"), TANDEM_INVALID_ARGUMENT, "made and not destroyed"), "");
    peer.world = nullptr;
  });
}

/// A thread that has begun to ask a world goes on asking it when another one has come to the end of destroying it.
TEST(Destroying, WaitsForThreadsThatAsk) {
  struct Thing {
    std::atomic<bool>& is_gone;
    ~Thing() { is_gone = true; }
  };
  c::Handles<Thing> things("thing");
  std::atomic<bool> asks = false, waits_are_over = false, is_gone = false, was_gone = false;
  Thing* const thing = things.keep(std::unique_ptr<Thing>(new Thing{is_gone}));
  std::thread asking([&] {
    const auto use = things.at_the_end(thing, "thing");
    asks = true;
    while (!waits_are_over) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that what is not waited for is gone by now
    was_gone = is_gone.load();
  });
  while (!asks) std::this_thread::yield();
  things.destroy(thing, "thing", [&](Thing&) { waits_are_over = true; });
  asking.join();
  EXPECT_TRUE(is_gone);
  EXPECT_FALSE(was_gone);
}

}  // namespace
}  // namespace tandem::test
