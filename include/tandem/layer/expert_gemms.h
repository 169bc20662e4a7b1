#pragma once
/// The products of a layer with experts, overlapped with the travel of rows.
///
///   auto plan = make_expert_gemms(world, {.experts = {.max_tokens = 4096, .hidden = 7168, .experts = 256, .top_k = 8},
///                                         .intermediate = 2048, .activation = Activation::kSwiGlu});
///   plan->route(stream, {.tokens = 4096, .ids = ids, .weights = weights, .routing = routing});
///   plan->dispatch_gemm(stream, {.tokens = 4096, .x = x, .routing = routing, .b = w1, .rows = rows, .out = h});
///   plan->gemm_combine(stream, {.tokens = 4096, .a = h, .routing = routing, .b = w2, .y = y, .out = out});
///
/// `dispatch_gemm` is a dispatch (tandem/layer/experts.h) and the first product of each expert here with its rows.
/// `gemm_combine` is the second product and the combination. Results have the bits of these calls one behind the other.
///
/// With ExpertOptions::tp_size above 1, each PE of a group has `intermediate` columns of the group's experts. They are
/// rows of the first matrix in memory (gates and ups of a gated activation), and columns of the second one.
/// `gemm_combine` adds the partial results.
///
/// With the wire kQuantised or kGiven the products are fp8_e4m3. A scale belongs to each 128 values of a row and to
/// each 128x128 weights, as GemmScales::blocks. Rows stay as they travelled, and the result of the first product is fp8
/// with scales. The second product's result, sums and `out` have the type.
///
/// In the overlapped form of dispatch_gemm, rows travel expert by expert. One GEMM computes the first experts beside
/// that, on the other SMs, and each panel waits for its experts' rows. A second GEMM computes the other experts on all
/// SMs. In the overlapped form of gemm_combine, the GEMM goes by chunks of columns. The sums of each chunk travel
/// beside the product of the next one.

#include <memory>
#include <string>
#include <vector>

#include "tandem/advanced/gemm.h"
#include "tandem/advanced/option_choice.h"
#include "tandem/layer/experts.h"

namespace tandem {

/// The order of a product and of the transfer of its rows.
enum class ExpertForm {
  kRule,        ///< sequential, which was faster on two GPUs
  kSequential,  ///< one after the other
  kOverlapped,  ///< side by side
};
/// Returns "rule", "sequential" or "overlapped".
const char* name(ExpertForm form);
/// Returns the form of that name. Throws InvalidArgument with the list of names.
ExpertForm parse_expert_form(const std::string& text);

/// Options of a plan, the same on all PEs.
struct ExpertGemmOptions {
  /// Tokens, experts and transport. The layout is kSorted, and there are no halves of calls. `align` is a multiple of
  /// tile_m, or 1 for tile_m itself, or for 128 where tile_m is 0. With a wire other than kType the type is kBF16, and
  /// `dispatch_gemm` is sequential.
  ExpertOptions experts;
  Size intermediate = 0;  ///< columns of the first product's result here: the expert's over tp_size, 1 to 65,536
  Activation activation =
      Activation::kNone;  ///< of the first product; gated ones take B of interleave_gates. fp8 on GPUs: gated
  ExpertForm dispatch_gemm = ExpertForm::kRule;  ///< the overlapped form has chunks, not packets
  ExpertForm gemm_combine = ExpertForm::kRule;   ///< likewise
  int communication_sms = -1;                    ///< SMs beside a GEMM for rows and sums; -1: by a model of both times
  int column_chunks = 0;  ///< of the overlapped gemm_combine, 1 to the tiles in a row; 0: up to 4
  int tile_m = 0;         ///< rows of a tile; 0, with tile_n 0: by `with_tile`
  int tile_n = 0;         ///< columns of a tile; those of an fp8 result are rounded up to whole blocks of 128
};

/// The arguments of `dispatch_gemm`: any memory of this PE.
struct DispatchGemmCall {
  Size tokens = 0;                  ///< rows of x, at least the tokens of the routing
  const void* x = nullptr;          ///< [tokens][hidden], of the type; fp8 with the wire kGiven
  const void* routing = nullptr;    ///< as `route` made it with this plan
  const void* b = nullptr;          ///< [experts here][columns of the product][hidden]
  void* rows = nullptr;             ///< [rows()][hidden]: the dispatched rows, which stay there
  void* out = nullptr;              ///< [rows()][intermediate]; rows that only align are undefined
  const float* x_scales = nullptr;  ///< wire kGiven: [tokens][ceil(hidden / 128)]; else null
  const float* b_scales = nullptr;  ///< fp8: GemmScales::b of all experts here; else null
  float* row_scales = nullptr;      ///< fp8: [rows()][ceil(hidden / 128)], of `rows`; else null
  float* out_scales = nullptr;      ///< fp8: [rows()][ceil(intermediate / 128)], of `out`; else null
};

/// The arguments of `gemm_combine`: any memory of this PE.
struct GemmCombineCall {
  Size tokens = 0;                  ///< rows of out, at least the tokens of the routing
  const void* a = nullptr;          ///< [rows()][intermediate]: by expert, as `dispatch_gemm` left them
  const void* routing = nullptr;    ///< as `route` made it with this plan
  const void* b = nullptr;          ///< [experts here][hidden][intermediate]
  void* y = nullptr;                ///< [rows()][hidden]: the products, which stay there
  const void* add = nullptr;        ///< [tokens][hidden], such as a shared expert's output; null: nothing
  void* out = nullptr;              ///< [tokens][hidden]; it may be `add`
  const float* a_scales = nullptr;  ///< fp8: [rows()][ceil(intermediate / 128)], of `a`; else null
  const float* b_scales = nullptr;  ///< fp8: GemmScales::b of all experts here; else null
};

/// Both products of a layer with experts, ready to run.
class ExpertGemmPlan {
 public:
  /// Returns the plan's memory, as ~CollectivePlan does.
  virtual ~ExpertGemmPlan() = default;
  /// Enqueues a routing, as ExpertPlan::route does. All PEs make the same calls of a plan in the same order, in one
  /// stream. No call allocates memory or blocks the host, so CUDA graphs can capture them.
  virtual void route(Stream& stream, const RouteCall& call) = 0;
  /// Enqueues the dispatch of rows and the first product. Throws InvalidArgument for tokens that are negative or above
  /// max_tokens, and for a buffer that is missing, too small or overlapping. A routing of another plan is refused as by
  /// ExpertPlan::dispatch.
  virtual void dispatch_gemm(Stream& stream, const DispatchGemmCall& call) = 0;
  /// Enqueues the second product and the combination. It throws as `dispatch_gemm` does.
  virtual void gemm_combine(Stream& stream, const GemmCombineCall& call) = 0;

  /// Returns the options with every choice made.
  const ExpertGemmOptions& options() const { return options_; }
  /// Returns the source of each choice of the options.
  const std::vector<OptionChoice>& choices() const { return choices_; }
  /// Returns the plan of routings, whose sizes and arrays are those of this plan.
  virtual const ExpertPlan& experts() const = 0;

 protected:
  /// Keeps the options, in which every choice is made.
  ExpertGemmPlan(const ExpertGemmOptions& options, std::vector<OptionChoice> choices)
      : options_(options), choices_(std::move(choices)) {}

 private:
  ExpertGemmOptions options_;
  std::vector<OptionChoice> choices_;
};

/// Makes a plan over all PEs of the world; all of them call it. Throws InvalidArgument with the name of the option, the
/// value given and the values allowed. Throws Unsupported as make_experts does.
std::unique_ptr<ExpertGemmPlan> make_expert_gemms(World& world, const ExpertGemmOptions& options);

/// Returns the sizes of a plan on `pes` PEs before it is made. Throws InvalidArgument as `make_expert_gemms` does.
ExpertSizes expert_gemm_sizes(const ExpertGemmOptions& options, int pes);
/// Returns the options with the size of tiles that a plan on `pes` PEs takes. By rule it is 64x128 for up to 48 rows of
/// an expert on average, with the most tokens. In fp8 it is 32x128 for up to 24. For more rows it is 128x256.
ExpertGemmOptions with_tile(const ExpertGemmOptions& options, int pes);
/// Returns the options of the plan of routings: sorted by expert, aligned to tiles.
ExpertOptions routing_options(const ExpertGemmOptions& options);

}  // namespace tandem
