// Listings of the documents, which are compiled and do not run. Each parameter is a name that a listing mentions.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tandem.h"
#include "tandem/advanced/gemm.h"
#include "tandem/advanced/local_handle.h"
#include "tandem/advanced/unique_id.h"
#include "tandem/block.h"
#include "tandem/collectives.h"
#include "tandem/cuda.h"
#include "tandem/layer/all_reduce_norm.h"
#include "tandem/layer/exchange_heads.h"
#include "tandem/layer/expert_gemms.h"
#include "tandem/layer/experts.h"
#include "tandem/layer/group_panels.h"
#include "tandem/layer/merge_heads.h"
#include "tandem/machine.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"
#include "tandem/stream.h"
#include "tandem/timeline.h"
#include "tandem/world.h"
#include "tandem/worlds.h"

namespace tandem::documents {

struct AnyKernel {
  struct Args {};

  // listing: kernel
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& args);
  // end of listing
};

void local_memory(World& world, Stream& stream, CollectiveOptions options, std::byte* in, std::byte* out, Size count) {
  // listing: local_memory
  options.local_in = options.local_out = true;  // on all PEs; each PE's buffers may lie anywhere
  auto plan = make_collective(world, Collective::kAllReduce, options);
  plan->run(stream, local_handle(world, in), local_handle(world, out), count);  // tandem/advanced/local_handle.h
  // end of listing
}

void gpu_threads(Size count) {
  // listing: gpu_threads
  CudaThreads threads(cuda_devices());  // tandem/cuda.h: a thread of this process for each PE
  threads.run([count](World& world) {
    CollectiveOptions options;
    options.type = DType::kBF16;
    options.max_count = count;
    auto plan = make_collective(world, Collective::kAllReduce, options);
    // ... world.copy_in, plan->run(stream, in, out, count), stream.synchronize(), world.copy_out
  });
  // end of listing
}

void growing_heap(World& world, CudaOptions& options, Size count) {
  // listing: growing_heap
  options.heap_bytes = Size{1} << 30;         // CudaOptions, and SimOptions in the simulator
  options.heap_limit_bytes = Size{16} << 30;  // the default is 0: the heap does not grow
  const auto data = world.heap().allocate<float>(count, "data");
  world.heap().free(data);  // collective, as shmem_free; free_local for a PE's own buffers
  // end of listing
}

void processes(int pe, int pes) {
  // listing: processes
  const UniqueId id = UniqueId::create();  // in one process; hand id.text() or id.bytes() to the others
  WorldProcess process(id, pe, pes);       // in all of them
  World& world = process.world();          // from here on as in the simulator
  // end of listing
  world.barrier();
}

void quantised(World& world, Size count) {
  // listing: quantised
  auto plan = make_collective(world, Collective::kAllReduce,
                              {.type = DType::kBF16, .max_count = count, .wire = WireFormat::kFp8});
  // end of listing
}

void all_reduce_norm(World& world, Stream& stream, Symm<std::byte> in, const void* residual, const void* weight,
                     Symm<std::byte> out, Symm<std::byte> sum) {
  // listing: all_reduce_norm
  auto plan = make_all_reduce_norm(world, {.type = DType::kBF16, .hidden = 8192, .max_rows = 64});
  plan->run(stream, {.rows = 16, .in = in, .residual = residual, .weight = weight, .out = out, .sum = sum});
  // end of listing
}

void norm_behind_gemm(World& world, Stream& stream, const void* a, const void* b, void* out, void* residual,
                      const void* weight) {
  // listing: norm_behind_gemm
  OperatorOptions options{.m = 64, .n = 8192, .k = 28672};
  options.norm = {.norm = Norm::kRms, .residual = true, .sum = true};
  auto plan = make_operator(world, Operator::kGemmAllReduce, options);
  OperatorCall call{.m = 16, .a = a, .b = {&b, 1}, .c = {&out, 1}};
  call.residual = call.sum = residual;  // in place
  call.norm_weight = weight;
  plan->run(stream, call);
  // end of listing
}

void norm_before_gather(World& world, Stream& stream, const void* a, const void* b, void* out, void* residual,
                        const void* weight) {
  // listing: norm_before_gather
  OperatorOptions options{.m = 4096, .n = 10240, .k = 8192};
  options.norm = {.norm = Norm::kRms, .residual = true, .sum = true};
  auto plan = make_operator(world, Operator::kAllGatherGemm, options);
  OperatorCall call{.m = 4096, .a = a, .b = {&b, 1}, .c = {&out, 1}};  // a: this PE's rows
  call.residual = call.sum = residual;                                 // of these rows, in place
  call.norm_weight = weight;
  plan->run(stream, call);
  // end of listing
}

void merge(World& world, Stream& stream, const void* partial, const float* lse, void* out) {
  // listing: merge_heads
  auto plan = make_merge_heads(world, {.type = DType::kBF16, .max_batch = 16, .heads = 64, .head_size = 128});
  plan->run(stream, {.batch = 4, .partial = partial, .lse = lse, .out = out});
  // end of listing
}

void exchange(World& world, Stream& stream, Size rows, const void* q, const void* k, const void* v,
              Symm<std::byte> q_all, Symm<std::byte> k_all, Symm<std::byte> v_all) {
  // listing: exchange_heads
  auto plan = make_exchange_heads(world, {.type = DType::kBF16, .segments = {4096, 1024, 1024}, .max_rows = 8192});
  plan->run(stream, {.rows = rows, .tensors = {{q, q_all}, {k, k_all}, {v, v_all}}});
  // end of listing
}

void experts(World& world, Stream& stream, const std::int32_t* ids, const float* weights, void* routing, const void* x,
             void* rows, const void* y, void* out) {
  // listing: experts
  auto plan = make_experts(world, {.max_tokens = 128, .hidden = 7168, .experts = 256, .top_k = 8});
  plan->route(stream, {.tokens = 16, .ids = ids, .weights = weights, .routing = routing});
  plan->dispatch(stream, {.tokens = 16, .x = x, .routing = routing, .out = rows});
  // the experts of this PE make y of the rows
  plan->combine(stream, {.tokens = 16, .y = y, .routing = routing, .out = out});
  // end of listing
}

void products_of_experts(World& world, Stream& stream, const std::int32_t* ids, const float* weights, void* routing,
                         const void* x, const void* w1, void* rows, void* h, const void* w2, void* y, void* out) {
  // listing: products_of_experts
  auto plan = make_expert_gemms(world, {.experts = {.max_tokens = 4096, .hidden = 7168, .experts = 256, .top_k = 8},
                                        .intermediate = 2048,
                                        .activation = Activation::kSwiGlu});
  plan->route(stream, {.tokens = 4096, .ids = ids, .weights = weights, .routing = routing});
  plan->dispatch_gemm(stream, {.tokens = 4096, .x = x, .routing = routing, .b = w1, .rows = rows, .out = h});
  plan->gemm_combine(stream, {.tokens = 4096, .a = h, .routing = routing, .b = w2, .y = y, .out = out});
  // end of listing
}

void tensor_parallel_experts(World& world) {
  const int pes = world.num_pes();
  // listing: tensor_parallel_experts
  auto plan =
      make_expert_gemms(world, {.experts = {.max_tokens = 64, .hidden = 4096, .experts = 8, .tp_size = pes, .top_k = 2},
                                .intermediate = 14336 / pes,  // of each PE
                                .activation = Activation::kSwiGlu});
  // end of listing
}

void grouped_gemm(World& world, Stream& stream, const std::int32_t* ids, const float* weights, void* routing,
                  const void* x, void* rows, const void* weights_of_experts, void* out) {
  // listing: grouped_gemm
  auto experts = make_experts(world, {.max_tokens = 4096, .hidden = 7168, .experts = 256, .top_k = 8, .align = 128});
  auto panels = make_group_panels(world, {.groups = 32, .most_panels = 1056});

  experts->route(stream, {.tokens = 4096, .ids = ids, .weights = weights, .routing = routing});
  experts->dispatch(stream, {.tokens = 4096, .x = x, .routing = routing, .out = rows});
  const ExpertRouting made = experts->routing(routing);
  panels->make(stream, made.counts, made.starts);

  Gemm gemm;
  gemm.m = experts->rows();  // the most rows
  gemm.n = 4096;
  gemm.k = 7168;
  gemm.a = rows;
  gemm.b = weights_of_experts;  // [experts here][n][k]
  gemm.destination = GemmLocal{out};
  gemm.groups = panels->groups();
  stream.gemm(gemm, world.team());
  // end of listing
}

void timeline(const std::function<void(World&)>& program) {
  // listing: timeline
  Simulation simulation(load_machine("h200x4"), 4, {.record = true});  // tandem/simulation.h, tandem/timeline.h
  simulation.run(program);
  trace::write_report({.title = "my kernel", .timelines = {simulation.timeline()}}, "report.html");
  trace::write_chrome_trace(simulation.timeline(), "trace.json");
  // end of listing
}

void gpu_timeline() {
  // listing: gpu_timeline
  CudaOptions options;
  options.record.on = true;  // tandem/advanced/profile.h
  CudaThreads threads(cuda_devices(), options);
  threads.run([&](World& world) {
    threads.record(world.pe(), false);  // on from the start; work that is enqueued now is not recorded
    // ... warm up; then threads.record(world.pe(), true) around the calls to be seen
  });
  const trace::Timeline& timeline = threads.timeline();
  const ProfileInfo& info = threads.profile_info();  // clocks and their error, what was lost
  // end of listing
  (void)timeline, (void)info;
}

void c_program(const void* in, void* out, std::size_t count, void* stream) {
  // listing: c_program
  tandem_world* world;
  tandem_world_from_environment(&world, NULL); /* under torchrun, srun or tandem launch */
  tandem_all_reduce(world, in, out, count, TANDEM_BF16, TANDEM_SUM, stream);
  tandem_synchronize(world, stream);
  tandem_world_destroy(world);
  // end of listing
}

void c_options(tandem_world* world) {
  // listing: options_in_c
  tandem_options options = {0};
  options.max_blocks = 16; /* at most 16 SMs a call, as NCCL's maxCTAs */
  options.algorithms = "all_reduce=two_shot, all_gather=copy_engine_push"; /* as NCCL_ALGO */
  tandem_world_from_environment(&world, &options);
  // end of listing
}

void c_split(tandem_world* world, tandem_world* pair, void* data, std::size_t count, void* stream) {
  // listing: split_in_c
  tandem_world_split(&pair, world, tandem_pe(world) / 2, 0, NULL); /* the PEs 2i and 2i + 1 */
  tandem_all_reduce(pair, data, data, count, TANDEM_BF16, TANDEM_SUM, stream);
  // end of listing
}

}  // namespace tandem::documents
