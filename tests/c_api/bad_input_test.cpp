// Wrong calls of the C API: the status that tandem.h promises, and a line with argument, given and allowed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "c_api/simulated/process.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::test {
namespace {

/// Addresses that no refused call may read.
int word = 0;
void* const kSomewhere = &word;
constexpr size_t kTooMany = ~size_t{0};

/// Every function that takes a world, with arguments that are right.
std::vector<tandem_status> calls_on(tandem_world* world) {
  void* memory = nullptr;
  tandem_world* part = nullptr;
  tandem_plan* plan = nullptr;
  const std::vector<size_t> sizes(8, 1);
  const size_t* const s = sizes.data();
  const tandem_message message{kSomewhere, 1, TANDEM_F32, 0};
  const tandem_problem problem{.m = 64, .n = 64, .k = 64, .type = TANDEM_BF16};
  const auto f32 = TANDEM_F32;
  void* const x = kSomewhere;
  std::vector<tandem_status> all;
  const auto add = [&](tandem_status status) {
    all.push_back(unlike(status, kInvalid, "world: ").empty() ? kInvalid : status);
  };
  add(tandem_world_split(&part, world, 0, 0, nullptr));
  add(tandem_world_abort(world, "why"));
  add(tandem_world_error(world));
  add(tandem_alloc(world, 64, &memory));
  add(tandem_free(world, x));
  add(tandem_register(world, x, 64));
  add(tandem_unregister(world, x));
  add(tandem_all_reduce(world, x, x, 1, f32, TANDEM_SUM, nullptr));
  add(tandem_reduce(world, x, x, 1, f32, TANDEM_SUM, 0, nullptr));
  add(tandem_reduce_scatter(world, x, x, 1, f32, TANDEM_SUM, nullptr));
  add(tandem_all_gather(world, x, x, 1, f32, nullptr));
  add(tandem_all_reduce_quantised(world, x, x, 1, f32, TANDEM_WIRE_FP8, nullptr));
  add(tandem_reduce_scatter_quantised(world, x, x, 1, f32, TANDEM_WIRE_FP8, nullptr));
  add(tandem_all_gather_quantised(world, x, x, 1, f32, TANDEM_WIRE_FP8, nullptr));
  add(tandem_all_to_all(world, x, x, 1, f32, nullptr));
  add(tandem_broadcast(world, x, x, 1, f32, 0, nullptr));
  add(tandem_gather(world, x, x, 1, f32, 0, nullptr));
  add(tandem_scatter(world, x, x, 1, f32, 0, nullptr));
  add(tandem_send(world, x, 1, f32, 0, nullptr));
  add(tandem_recv(world, x, 1, f32, 0, nullptr));
  add(tandem_send_recv(world, &message, 1, &message, 1, nullptr));
  add(tandem_all_gather_v(world, x, x, s, s, f32, nullptr));
  add(tandem_all_to_all_v(world, x, s, s, x, s, s, f32, nullptr));
  add(tandem_plan_create(&plan, world, TANDEM_ALL_GATHER_GEMM, &problem));
  add(tandem_synchronize(world, nullptr));
  add(tandem_barrier(world));
  add(tandem_barrier_on(world, nullptr));
  return all;
}

TEST(BadInput, HandlesThatAreNone) {
  std::vector<tandem_world*> destroyed(2);
  run_in_c(2, [&](CPeer& peer) { destroyed[static_cast<size_t>(peer.pe)] = peer.world; });
  for (tandem_world* const world : {static_cast<tandem_world*>(nullptr), destroyed[0], destroyed[1]}) {
    for (const tandem_status status : calls_on(world)) EXPECT_EQ(status, kInvalid);
    EXPECT_EQ(tandem_pe(world), -1);
    EXPECT_EQ(tandem_num_pes(world), 0);
  }
  EXPECT_EQ(unlike(tandem_world_destroy(nullptr), TANDEM_SUCCESS), "");
  EXPECT_EQ(unlike(tandem_world_destroy(destroyed[0]), kInvalid, "allowed is a tandem_world that was made"), "");
  EXPECT_EQ(unlike(tandem_plan_destroy(nullptr), TANDEM_SUCCESS), "");
  EXPECT_EQ(unlike(tandem_plan_destroy(static_cast<tandem_plan*>(kSomewhere)), kInvalid, "plan: "), "");
  EXPECT_EQ(unlike(tandem_plan_run(nullptr, 0, nullptr, nullptr, nullptr, nullptr), kInvalid, "plan: NULL given"), "");
}

TEST(BadInput, WorldsThatCannotBeMade) {
  tandem_world* world = static_cast<tandem_world*>(kSomewhere);
  const UniqueId id = UniqueId::create();
  const void* const bytes = id.bytes().data();
  EXPECT_EQ(unlike(tandem_unique_id_create(nullptr, nullptr), kInvalid, "id: NULL given"), "");
  std::vector<std::byte> made(TANDEM_UNIQUE_ID_BYTES);
  EXPECT_EQ(unlike(tandem_unique_id_create(made.data(), ""), kInvalid, "address"), "");
  EXPECT_EQ(unlike(tandem_world_create(nullptr, bytes, 0, 2, nullptr), kInvalid, "world: NULL given"), "");
  EXPECT_EQ(unlike(tandem_world_create(&world, nullptr, 0, 2, nullptr), kInvalid, "id: NULL given"), "");
  EXPECT_EQ(world, nullptr) << "what could not be made";
  EXPECT_EQ(unlike(tandem_world_create(&world, made.data(), 0, 2, nullptr), kInvalid, "unique id"), "");
  const auto with = [&](const tandem_options& options) { return tandem_world_create(&world, bytes, 0, 2, &options); };
  EXPECT_EQ(unlike(with({.device = TANDEM_GPU}), TANDEM_UNSUPPORTED, "no GPU"), "");
  EXPECT_EQ(unlike(with({.device = static_cast<tandem_device>(3)}), kInvalid,
                   "device: 3 given, allowed is a tandem_device, 0 to 2"),
            "");
  EXPECT_EQ(unlike(with({.heap_bytes = kTooMany}), kInvalid, "heap_bytes: 18446744073709551615 given, allowed is"), "");
  EXPECT_EQ(unlike(with({.staging_bytes = kTooMany}), kInvalid, "staging_bytes: "), "");
  EXPECT_EQ(unlike(with({.any_memory = 2}), kInvalid, "any_memory: 2 given, allowed is 0 or 1"), "");
  EXPECT_EQ(unlike(with({.max_blocks = -1}), kInvalid, "max_blocks: -1 given, allowed are 1 to the GPU's SMs"), "");
  const auto named = [&](const char* text, const char* part) {
    return unlike(with({.algorithms = text}), kInvalid, part);
  };
  EXPECT_EQ(named("ring", "algorithms: 'ring' given, allowed is COLLECTIVE=ALGORITHM"), "");
  EXPECT_EQ(named("all_reduce=ring,,", "algorithms: '' given, allowed is COLLECTIVE=ALGORITHM"), "");
  EXPECT_EQ(named("allreduce=ring", "algorithms: no collective 'allreduce'; there are all_reduce, all_gather, "), "");
  EXPECT_EQ(named("send_recv=ring", "algorithms: no collective 'send_recv'; "), "");
  EXPECT_EQ(named("all_gather=Ring", "algorithms: all_gather has no 'Ring'; it has push, "), "");
  EXPECT_EQ(named("all_gather=", "algorithms: all_gather has no ''; it has push, "), "");
  EXPECT_EQ(named("all_reduce=ring, all_reduce=tree", "algorithms: ring and tree given for all_reduce"), "");
  EXPECT_EQ(unlike(with({.timeout_s = -1}), kInvalid, "timeout_s: -1 given, allowed is 0 or more"), "");
  EXPECT_EQ(unlike(with({.join_timeout_s = std::nan("")}), kInvalid, "join_timeout_s: nan given"), "");
  for (const char* const variable : {"RANK", "WORLD_SIZE", "SLURM_PROCID", "TANDEM_UNIQUE_ID"}) unsetenv(variable);
  EXPECT_EQ(unlike(tandem_world_from_environment(&world, nullptr), kInvalid, "WORLD_SIZE: not set"), "");
  EXPECT_EQ(unlike(tandem_world_from_environment(nullptr, nullptr), kInvalid, "world: NULL given"), "");
}

TEST(BadInput, Collectives) {
  run_in_c(2, [](CPeer& peer) {
    tandem_world* const w = peer.world;
    void* x = nullptr;
    EXPECT_EQ(unlike(tandem_alloc(w, 4096, &x), TANDEM_SUCCESS), "");
    const auto reduced = [&](const void* in, void* out, size_t count, int type, int op, const char* text) {
      return unlike(tandem_all_reduce(w, in, out, count, static_cast<tandem_dtype>(type), static_cast<tandem_op>(op),
                                      peer.stream),
                    kInvalid, text);
    };
    EXPECT_EQ(reduced(nullptr, x, 4, TANDEM_F32, 0, "NULL given for in"), "");
    EXPECT_EQ(reduced(x, nullptr, 4, TANDEM_F32, 0, "NULL given for out"), "");
    EXPECT_EQ(reduced(x, x, kTooMany, TANDEM_F32, 0, "count: 18446744073709551615 given, allowed is at most"), "");
    for (const int type : {0, -1, 13, 77})
      EXPECT_EQ(reduced(x, x, 4, type, 0, "given, allowed is a tandem_dtype, 1 to 12"), "") << type;
    for (const int op : {-1, 5})
      EXPECT_EQ(reduced(x, x, 4, TANDEM_F32, op, "allowed is a tandem_op, 0 to 4"), "") << op;
    for (const int root : {-1, 2}) {
      const auto f32 = TANDEM_F32;
      EXPECT_EQ(unlike(tandem_broadcast(w, x, x, 4, f32, root, peer.stream), kInvalid, "root"), "");
      EXPECT_EQ(unlike(tandem_reduce(w, x, x, 4, f32, TANDEM_SUM, root, peer.stream), kInvalid, "root"), "");
      EXPECT_EQ(unlike(tandem_gather(w, x, x, 4, f32, root, peer.stream), kInvalid, "root"), "");
      EXPECT_EQ(unlike(tandem_scatter(w, x, x, 4, f32, root, peer.stream), kInvalid, "root"), "");
    }
    EXPECT_EQ(unlike(tandem_world_error(w), TANDEM_SUCCESS), "") << "refused calls do no harm";
  });
}

TEST(BadInput, Memory) {
  run_in_c(2, [](CPeer& peer) {
    tandem_world* const w = peer.world;
    void* x = kSomewhere;
    EXPECT_EQ(unlike(tandem_alloc(w, 64, nullptr), kInvalid, "pointer: NULL given"), "");
    EXPECT_EQ(unlike(tandem_alloc(w, kTooMany, &x), kInvalid, "bytes: "), "");
    EXPECT_EQ(x, nullptr) << "what could not be made";
    EXPECT_EQ(unlike(tandem_alloc(w, size_t{1} << 45, &x), TANDEM_OUT_OF_MEMORY, "35184372088832 bytes asked"), "");
    EXPECT_EQ(unlike(tandem_alloc(w, 64, &x), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_all_reduce(w, x, x, 1000, TANDEM_F32, TANDEM_SUM, peer.stream), kInvalid,
                     "in: a buffer that has 64 bytes from "),
              "");
    EXPECT_EQ(unlike(tandem_free(w, nullptr), kInvalid, "free"), "");
    EXPECT_EQ(unlike(tandem_free(w, kSomewhere), kInvalid, "free"), "");
    EXPECT_EQ(unlike(tandem_free(w, static_cast<std::byte*>(x) + 4), kInvalid, "free"), "");
    EXPECT_EQ(unlike(tandem_free(w, x), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_free(w, x), kInvalid, "free"), "");
  });
}

TEST(BadInput, Messages) {
  run_in_c(2, [](CPeer& peer) {
    tandem_world* const w = peer.world;
    std::vector<float> own(64);
    void* const x = own.data();
    const auto f32 = TANDEM_F32;
    const tandem_message message{x, 4, f32, 0};
    EXPECT_EQ(unlike(tandem_send(w, x, 4, f32, 2, peer.stream), kInvalid, "peer 2 given, allowed are 0 to 1"), "");
    EXPECT_EQ(unlike(tandem_send(w, nullptr, 4, f32, 1, peer.stream), kInvalid, "without data"), "");
    EXPECT_EQ(unlike(tandem_recv(w, x, kTooMany, f32, 1, peer.stream), kInvalid, "count: "), "");
    EXPECT_EQ(unlike(tandem_recv(w, x, 4, tandem_dtype{}, 1, peer.stream), kInvalid, "type: 0 given"), "");
    EXPECT_EQ(unlike(tandem_send_recv(w, nullptr, 2, nullptr, 0, peer.stream), kInvalid, "sends: NULL given"), "");
    EXPECT_EQ(unlike(tandem_send_recv(w, &message, kTooMany, nullptr, 0, peer.stream), kInvalid, "num_sends: "), "");
    EXPECT_EQ(unlike(tandem_send_recv(w, &message, 1, &message, 513, peer.stream), kInvalid, "num_receives: 513"), "");
    const size_t counts[] = {4, 4}, others[] = {3, 3}, offsets[] = {8, 16}, far[] = {kTooMany, kTooMany};
    const auto gathered = [&](const void* in, void* out, const size_t* c, const size_t* o, const char* text) {
      return unlike(tandem_all_gather_v(w, in, out, c, o, f32, peer.stream), kInvalid, text);
    };
    EXPECT_EQ(gathered(nullptr, x, counts, offsets, "in: NULL given"), "");
    EXPECT_EQ(gathered(x, nullptr, counts, offsets, "out: NULL given"), "");
    EXPECT_EQ(gathered(x, x, nullptr, offsets, "counts: NULL given"), "");
    EXPECT_EQ(gathered(x, x, counts, nullptr, "offsets: NULL given"), "");
    EXPECT_EQ(gathered(x, x, counts, far, "count: "), "");
    const auto all_to_all = [&](const void* in, const size_t* outs, const char* text) {
      return unlike(tandem_all_to_all_v(w, in, counts, offsets, x, outs, offsets, f32, peer.stream), kInvalid, text);
    };
    EXPECT_EQ(all_to_all(nullptr, counts, "in: NULL given"), "");
    EXPECT_EQ(all_to_all(x, nullptr, "out_counts: NULL given"), "");
    EXPECT_EQ(all_to_all(x, others, "12 bytes given, allowed is 16, as this PE sends itself"), "");
  });
}

}  // namespace
}  // namespace tandem::test
