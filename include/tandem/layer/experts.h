#pragma once
/// Layers with experts: every PE holds some of the experts, and a token's rows go to the PEs whose experts it chose.
///
///   auto plan = make_experts(world, {.max_tokens = 128, .hidden = 7168, .experts = 256, .top_k = 8});
///   plan->route(stream, {.tokens = 16, .ids = ids, .weights = weights, .routing = routing});
///   plan->dispatch(stream, {.tokens = 16, .x = x, .routing = routing, .out = rows});
///   ... the experts here turn `rows` into `y`, one row for each ...
///   plan->combine(stream, {.tokens = 16, .y = y, .routing = routing, .out = out});
///
/// With n PEs, PE p holds the experts [p, p + 1) * experts / n. `route` makes a routing from the choices of all PEs,
/// and the caller keeps it: any number of dispatches and combines may use it. Rows of an expert are in the order (PE
/// from this one on, token, choice). `combine` computes for each token
///
///   sum[p] = y of its experts on PE p, times their weights, added in f32 in the order of choices, rounded to the type
///   out    = sum[0] + ... + sum[n-1] + add       in f32, over the PEs that have an expert of it, rounded once
///
/// Experts can be divided by columns, too. With ExpertOptions::tp_size = s, PE p is in group g = p / s, which holds the
/// experts [g, g + 1) * experts * s / n. Each PE of a group has a part of these experts' columns, and gets all of their
/// rows. Its y are partial results, and the sums above complete them. With s = n the experts are tensor-parallel: every
/// PE has a part of all experts, dispatch is an all-gather, and combine is a reduce-scatter.
///
/// All bits are the same in every run. An id of -1 chooses no expert. An expert that a token chooses twice counts
/// twice. A token without experts gets `add`, or zeros.
///
/// Rows travel to places that are the tokens' own numbers, as packets or, where there are many, as chunks with signals
/// (ExpertTransport). The staging of a plan takes about 4 * (n - 1) * max_tokens * hidden * size of the type bytes for
/// chunks. Packets take 6.9 times that product, or 9.1 times if routing and dispatch are one kernel. With 7168 bf16
/// on 4 PEs, 128 tokens need 38 MB and 4096 need 705 MB.
/// Each of `batches` beyond the first takes half as much again for chunks, and a third for packets.
///
/// A dispatch or a combination can be cut into halves, between which nothing runs. The stream may compute something
/// else while the rows travel:
///
///   plan->dispatch_send(stream, first);      // with ExpertOptions::batches = 1 or more
///   ... the attention of a second batch ...
///   plan->dispatch_receive(stream, first);   // the same call

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/advanced/option_choice.h"
#include "tandem/numeric.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

namespace kernels {
struct ExpertPlanMaker;
}

/// The place of a row in the output of `dispatch`.
enum class ExpertLayout {
  kSorted,    ///< by expert, each expert's first row at a multiple of `align`; a row for each choice
  kByExpert,  ///< [experts of this PE][most_rows]; a row for each choice
  kInPlace,   ///< [PE][max_tokens]: a row for each token; ExpertRouting::slots has the sorted rows' numbers
};
/// Returns "sorted", "by_expert" or "in_place".
const char* name(ExpertLayout layout);
/// Returns the layout of that name. Throws InvalidArgument with the list of names.
ExpertLayout parse_expert_layout(const std::string& text);

/// The form in which rows travel to experts.
enum class ExpertWire {
  kType,       ///< in the type
  kQuantised,  ///< in fp8_e4m3, made by `dispatch`, with a scale for each 128 elements: their greatest |x| / 448
  kGiven,      ///< in fp8_e4m3, given with such scales
};
/// Returns "type", "quantised" or "given".
const char* name(ExpertWire wire);
/// Returns the form of that name. Throws InvalidArgument with the list of names.
ExpertWire parse_expert_wire(const std::string& text);

/// The way of rows between PEs.
enum class ExpertTransport {
  kRule,     ///< packets or chunks, as `tandem tune` found them to be faster, else by bytes
  kPackets,  ///< packets: least latency
  kChunks,   ///< stores, and a signal behind each chunk of tokens: the link's whole rate
  kFused,    ///< packets, and route_and_dispatch is one kernel: for few tokens, slower on two H100s
};
/// Returns "rule", "packets", "chunks" or "fused".
const char* name(ExpertTransport transport);
/// Returns the transport of that name. Throws InvalidArgument with the list of names.
ExpertTransport parse_expert_transport(const std::string& text);

/// Options of a plan, the same on all PEs.
struct ExpertOptions {
  DType type = DType::kBF16;                    ///< of x, y, add and the sums: bf16 or f16
  Size max_tokens = 0;                          ///< the most tokens of a PE
  Size hidden = 0;                              ///< elements of a row, 1 to 65,536
  int experts = 0;                              ///< of all PEs, a multiple of the PEs over tp_size
  int tp_size = 1;                              ///< PEs that share the columns of each expert, a divisor of the PEs
  int top_k = 0;                                ///< choices of a token, 1 to 16
  ExpertWire wire = ExpertWire::kType;          ///< the form of rows from token to expert
  ExpertLayout layout = ExpertLayout::kSorted;  ///< of dispatched rows
  Size align = 1;                               ///< of sorted experts' first rows, 1 to 1024
  Size most_rows = 0;                           ///< of an expert in kByExpert; 0: max_tokens of every PE
  bool scales_by_group = false;                 ///< out_scales as grouped GEMMs read them: [group][scales_stride()]
  ExpertTransport transport = ExpertTransport::kRule;  ///< between PEs
  int batches = 0;  ///< in flight between halves of calls, at most 8; 0: calls are not cut into halves
  int blocks = 0;   ///< of 128 threads, at most four for each SM; 0: chosen by rows
};

/// The arrays of a routing, in device memory. Rows are those of the experts of this PE.
struct ExpertRouting {
  const std::int32_t* tokens = nullptr;  ///< [PE]: tokens of each PE
  const std::int32_t* counts = nullptr;  ///< [expert here]: its rows
  const std::int32_t* starts = nullptr;  ///< [experts here + 1]: its first row, and at last the end of all
  const std::int32_t* slots = nullptr;   ///< [row]: PE * max_tokens + token, or -1 for a row that only aligns
  const std::int32_t* ids = nullptr;     ///< [PE][id_stride]: a PE's choices, experts or -1
  const std::int32_t* places = nullptr;  ///< [PE][choice_stride]: row, -2 for no room; of choices whose expert is here
  const float* weights = nullptr;        ///< [PE][choice_stride]
  Size id_stride = 0;                    ///< max_tokens * top_k or more
  Size choice_stride = 0;                ///< likewise
};

/// The sizes of a plan's buffers.
struct ExpertSizes {
  Size routing_bytes = 0;    ///< of a routing
  Size rows = 0;             ///< the most rows of the experts here
  Size dispatched_rows = 0;  ///< the most rows of the output of `dispatch`
};

/// The arguments of `route`: any memory of this PE.
struct RouteCall {
  Size tokens = 0;                                 ///< of this PE
  const std::int32_t* tokens_on_device = nullptr;  ///< their number in device memory, or null; `tokens` bounds it
  const void* ids = nullptr;                       ///< [tokens][top_k]: experts, or -1
  DType id_type = DType::kI32;                     ///< i32 or i64
  const float* weights = nullptr;                  ///< [tokens][top_k]; null: all 1
  void* routing = nullptr;  ///< routing_bytes() bytes at a multiple of 16; a checked program zeroes them
};

/// The arguments of `dispatch`: any memory of this PE.
struct DispatchCall {
  Size tokens = 0;                  ///< rows of x, at least the tokens of the routing
  const void* x = nullptr;          ///< [tokens][hidden]
  const float* x_scales = nullptr;  ///< [tokens][ceil(hidden / 128)], with ExpertWire::kGiven
  const void* routing = nullptr;    ///< as `route` made it with this plan
  void* out = nullptr;              ///< [dispatched_rows()][hidden]
  float* out_scales = nullptr;      ///< [dispatched_rows()][ceil(hidden / 128)], or by group; with fp8 rows
};

/// The arguments of `combine`: any memory of this PE.
struct CombineCall {
  Size tokens = 0;                ///< rows of out, at least the tokens of the routing
  const void* y = nullptr;        ///< [rows()][hidden]: sorted or by expert
  const void* routing = nullptr;  ///< as `route` made it with this plan
  const void* add = nullptr;      ///< [tokens][hidden], such as a shared expert's output; null: nothing
  void* out = nullptr;            ///< [tokens][hidden]; it may be `add`
};

/// Routing, dispatch and combine that are ready to run.
class ExpertPlan {
 public:
  /// Returns the plan's memory, as ~CollectivePlan does.
  virtual ~ExpertPlan();
  /// Enqueues the routing of the given choices. All PEs make the same calls of a plan in the same order, in one stream.
  /// Numbers of tokens may differ. No call allocates memory or blocks the host, so CUDA graphs can capture them.
  ///
  /// Throws InvalidArgument for tokens that are negative or above max_tokens, and for a buffer that is missing, too
  /// small or overlapping. An id outside [-1, experts) counts as -1, and the stream's next `synchronize` throws
  /// InvalidArgument with the first one. It does so for an expert with more than most_rows rows, too, which loses the
  /// last ones.
  void route(Stream& stream, const RouteCall& call);
  /// Enqueues the transfer of rows to experts. It throws as `route` does. It refuses a routing in memory of the heap
  /// that a plan of other max_tokens, experts, tp_size, top_k, align or most_rows has written last.
  void dispatch(Stream& stream, const DispatchCall& call);
  /// Enqueues the routing, and the transfer of rows with it. The results are those of `route` and `dispatch`, which it
  /// calls unless the transport is kFused. It throws as `route` does, and InvalidArgument for two routings or for
  /// outputs of `rows` that overlap `choices`.
  void route_and_dispatch(Stream& stream, const RouteCall& choices, const DispatchCall& rows);
  /// Enqueues the weighted sums of the experts' rows. It throws as `dispatch` does.
  void combine(Stream& stream, const CombineCall& call);
  /// Enqueues the first half of a dispatch. It reads x and writes this PE's own rows. Throws as `route` does, and
  /// InvalidArgument if as many batches as the plan allows are in flight.
  void dispatch_send(Stream& stream, const DispatchCall& call);
  /// Enqueues the second half of the oldest dispatch in flight, given the same call. Throws as `route` does, and
  /// InvalidArgument if none is in flight.
  void dispatch_receive(Stream& stream, const DispatchCall& call);
  /// Enqueues the first half of a combination, as dispatch_send does. It reads y.
  void combine_send(Stream& stream, const CombineCall& call);
  /// Enqueues the second half, as dispatch_receive does. It reads y again.
  void combine_receive(Stream& stream, const CombineCall& call);

  /// Returns the options with every choice made.
  const ExpertOptions& options() const { return options_; }
  /// Returns the source of each choice of the options: the transport, as "algo", and the blocks.
  const std::vector<OptionChoice>& choices() const { return choices_; }
  /// Returns the bytes of a routing.
  virtual Size routing_bytes() const = 0;
  /// Returns the arrays of a routing.
  virtual ExpertRouting routing(const void* memory) const = 0;
  /// Returns the most rows of the experts here: those of `y`.
  virtual Size rows() const = 0;
  /// Returns the most rows of the output of `dispatch`.
  Size dispatched_rows() const;
  /// Returns the floats from one group of 128 elements to the next in out_scales by group: the rows, padded to a
  /// multiple of 4.
  Size scales_stride() const;
  /// Returns the function that throws for choices that `route` refused. Streams call it, see Stream::synchronize.
  const std::shared_ptr<const std::function<void()>>& refused_choices() const { return refused_choices_; }

 protected:
  /// Keeps the options, in which every choice is made.
  ExpertPlan(World& world, const ExpertOptions& options);

  World world_;                                                   ///< the world of the plan
  std::shared_ptr<const std::function<void()>> refused_choices_;  ///< throws what `route` noted

  /// A call, or a half of it.
  enum class Part { kAll, kSend, kReceive };

 private:
  friend struct kernels::ExpertPlanMaker;
  enum Kind { kRoute, kDispatch, kCombine, kRouteAndDispatch };
  virtual void enqueue(Stream& stream, const RouteCall& call) = 0;
  virtual void enqueue(Stream& stream, const DispatchCall& call, Part part) = 0;
  virtual void enqueue(Stream& stream, const CombineCall& call, Part part) = 0;
  virtual void enqueue(Stream& stream, const RouteCall& choices, const DispatchCall& rows) = 0;
  template <class Call, class... Parts>
  void note_and_enqueue(Kind kind, Stream& stream, const Call& call, Parts... part);
  void check_batches(Kind kind, Part part) const;

  ExpertOptions options_;
  std::vector<OptionChoice> choices_;
  std::size_t numbers_[4] = {};  // by Kind, in the detector of mismatching calls
  int in_flight_[4] = {};        // batches, by Kind
  detail::PlanMemory memory_;
};

/// Makes a plan over all PEs of the world; all of them call it (see make_collective). Throws InvalidArgument with the
/// name of the option, the value given and the values allowed. Throws Unsupported if the PEs are not all in one node
/// or more than 64. In a phantom simulation the ids, numbers of tokens and routings need memory with contents
/// (Index).
std::unique_ptr<ExpertPlan> make_experts(World& world, const ExpertOptions& options);

/// Returns the number of experts of each of `pes` PEs.
inline int experts_of_pe(const ExpertOptions& options, int pes) { return options.experts / (pes / options.tp_size); }
/// Returns the first expert of PE `pe` of `pes`.
inline int first_expert(const ExpertOptions& options, int pes, int pe) {
  return pe / options.tp_size * experts_of_pe(options, pes);
}

/// Returns the sizes of a plan on `pes` PEs before it is made. Throws InvalidArgument as `make_experts` does.
ExpertSizes expert_sizes(const ExpertOptions& options, int pes);
/// Returns the arrays of a routing for such a plan.
ExpertRouting expert_routing(const ExpertOptions& options, int pes, const void* memory);

}  // namespace tandem
