// exchange_heads on the command line.
#include <fmt/format.h>

#include "collectives/reference/exchange_example.h"
#include "tandem/error.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {
namespace {

constexpr const char* kExchangeName = "exchange_heads";

/// The tensors in heads of all PEs.
struct ExchangedHeads {
  std::vector<Size> heads;
  Size head_size = 0;
};

class ExchangeCall final : public LayerCall {
 public:
  ExchangeCall(const ExchangeHeadsOptions& options, int pes)
      : options_(options), example_(options, pes, options.max_rows, 0) {}

  void begin(World& world) override {
    plan_ = make_exchange_heads(world, options_);
    call_.rows = options_.max_rows;
    for (int t = 0; t < example_.tensors(); ++t) {
      const Size bytes = example_.bytes(t);
      const void* const in = local_copy(world, bytes, "in", [&] { return example_.in(world.pe(), t); });
      call_.tensors.push_back({in, world.heap().allocate<std::byte>(bytes, "out")});
    }
  }

  void call(Stream& stream) override { plan_->run(stream, call_); }

  void verify(World& world, Check& check) override {
    for (int t = 0; t < example_.tensors(); ++t) {
      const auto out = host_copy(world, call_.tensors[static_cast<std::size_t>(t)].out.local(), example_.bytes(t));
      const Size wrong = example_.wrong(world.pe(), t, out.data());
      check.checked += example_.bytes(t) / size_of(options_.type);
      check.wrong += wrong;
      if (wrong > 0) check.max_error.reset();
    }
    check.expectation = "bit for bit";
  }

  double bytes_per_pe() const override {
    double bytes = 0;
    for (int t = 0; t < example_.tensors(); ++t) bytes += 2 * static_cast<double>(example_.bytes(t));
    return bytes;
  }
  std::string algorithm() const override { return "segments"; }
  std::vector<OptionChoice> choices() const override { return plan_->choices(); }

 private:
  ExchangeHeadsOptions options_;
  kernels::ExchangeExample example_;
  std::unique_ptr<ExchangeHeadsPlan> plan_;
  ExchangeHeadsCall call_;
};

/// Returns the plan's options for these PEs.
ExchangeHeadsOptions sized(ExchangeHeadsOptions o, const ExchangedHeads& shape, Size rows, int pes) {
  for (const Size heads : shape.heads) {
    if (heads % pes != 0)
      throw InvalidArgument(fmt::format("--heads, --kv-heads: {} given to {} on {} PEs, allowed are multiples of {}",
                                        heads, kExchangeName, pes, pes));
    o.segments.push_back(heads / pes * shape.head_size);
  }
  o.max_rows = rows;
  return o;
}

HeadsDirection direction_of(const std::string& text) {
  if (text == "heads") return HeadsDirection::kToHeads;
  if (text == "rows") return HeadsDirection::kToRows;
  throw InvalidArgument(fmt::format("--to: '{}' given, allowed are heads and rows", text));
}

}  // namespace

LayerRun make_exchange_run(const Arguments& a) {
  refuse_all_but_layer_options(a);
  constexpr Size kRows = 1024, kHeads = 32, kHeadSize = 128;
  if (a.algorithm)
    throw InvalidArgument(fmt::format("--algo: '{}' given to {}, which has one", *a.algorithm, kExchangeName));
  ExchangeHeadsOptions o;
  o.type = dtype_option(a, DType::kBF16);
  o.direction = direction_of(a.to.value_or("heads"));
  o.blocks = a.blocks.value_or(0);
  ExchangedHeads shape;
  shape.heads = {a.heads ? parse_size("--heads", *a.heads) : kHeads};
  const Size kv_heads = a.kv_heads ? parse_size("--kv-heads", *a.kv_heads) : shape.heads[0];
  if (o.direction == HeadsDirection::kToHeads) shape.heads.insert(shape.heads.end(), {kv_heads, kv_heads});
  if (o.direction == HeadsDirection::kToRows && a.kv_heads)
    throw InvalidArgument("--kv-heads: does not apply with --to rows, which exchanges the attention's output");
  shape.head_size = a.head_size ? parse_size("--head-size", *a.head_size) : kHeadSize;
  LayerRun run;
  run.unit = "rows";
  run.size = a.rows ? parse_size("--rows", *a.rows) : kRows;
  run.make = [o, shape](Size rows, int pes) { return std::make_unique<ExchangeCall>(sized(o, shape, rows, pes), pes); };
  run.describe = [o, shape](Size rows) {
    Result result;
    result.op = kExchangeName;
    result.shape = fmt::format("{}x{}x{}", rows, shape.heads[0], shape.head_size);
    result.dtype = name(o.type);
    result.extras = o.direction == HeadsDirection::kToRows
                        ? "one tensor to rows"
                        : fmt::format("q, k and v to heads, {} heads of k", shape.heads[1]);
    return result;
  };
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  return run;
}

}  // namespace tandem::cli
