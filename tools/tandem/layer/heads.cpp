// merge_heads on the command line.
#include <fmt/format.h>

#include "collectives/reference/heads_example.h"
#include "tandem/error.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {
namespace {

constexpr const char* kHeadsName = "merge_heads";

class HeadsCall final : public LayerCall {
 public:
  HeadsCall(const MergeHeadsOptions& options, int pes)
      : options_(options), example_(options, pes, options.max_batch, 0) {}

  void begin(World& world) override {
    plan_ = make_merge_heads(world, options_);
    const int pe = world.pe();
    call_.batch = options_.max_batch;
    call_.partial = local_copy(world, whole(), "partial", [&] { return example_.partials(pe); });
    call_.lse = reinterpret_cast<float*>(
        local_copy(world, rows() * Size{sizeof(float)}, "lse", [&] { return example_.lses(pe); }));
    call_.out = world.heap().allocate_local<std::byte>(example_.out_bytes(pe), "out");
  }

  void call(Stream& stream) override { plan_->run(stream, call_); }

  void verify(World& world, Check& check) override {
    const auto out = host_copy(world, call_.out, example_.out_bytes(world.pe()));
    const kernels::HeadsErrors errors = example_.errors(world.pe(), out.data());
    check.checked += errors.checked;
    check.wrong += errors.wrong;
    if (errors.wrong > 0) check.max_error.reset();
    check.expectation = "bit for bit";
  }

  double bytes_per_pe() const override { return static_cast<double>(2 * whole() + rows() * Size{sizeof(float)}); }
  std::string algorithm() const override { return plan_->choices().front().value; }
  std::vector<OptionChoice> choices() const override { return plan_->choices(); }

 private:
  Size rows() const { return options_.max_batch * options_.heads; }
  Size whole() const { return rows() * options_.head_size * size_of(options_.type); }

  MergeHeadsOptions options_;
  kernels::HeadsExample example_;
  std::unique_ptr<MergeHeadsPlan> plan_;
  MergeHeadsCall call_;
};

Result result_of(const MergeHeadsOptions& o, Size batch) {
  Result result;
  result.op = kHeadsName;
  result.shape = fmt::format("{}x{}x{}", batch, o.heads, o.head_size);
  result.dtype = name(o.type);
  result.extras = o.own_heads ? "own heads" : "all heads";
  return result;
}

}  // namespace

LayerRun make_heads_run(const Arguments& a) {
  refuse_all_but_layer_options(a);
  constexpr Size kBatch = 16, kHeads = 64, kHeadSize = 128;
  if (a.algorithm)
    throw InvalidArgument(fmt::format("--algo: '{}' given to {}, whose packets follow from the size of a head",
                                      *a.algorithm, kHeadsName));
  MergeHeadsOptions o;
  o.type = dtype_option(a, DType::kBF16);
  o.heads = a.heads ? parse_size("--heads", *a.heads) : kHeads;
  o.head_size = a.head_size ? parse_size("--head-size", *a.head_size) : kHeadSize;
  o.base = LseBase::kTwo;  // weights are powers of two, so every element is exact
  o.own_heads = !a.all_heads;
  o.blocks = a.blocks.value_or(0);
  LayerRun run;
  run.unit = "batch";
  run.size = a.batch ? parse_size("--batch", *a.batch) : kBatch;
  run.make = [o](Size batch, int pes) {
    MergeHeadsOptions sized = o;
    sized.max_batch = batch;
    return std::make_unique<HeadsCall>(sized, pes);
  };
  run.describe = [o](Size batch) { return result_of(o, batch); };
  LayerChoices choices{kHeadsName, o.heads * o.head_size * size_of(o.type), o.heads, size_of(o.type), {""}, {}};
  choices.blocks = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  run.choices = choices;
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  return run;
}

}  // namespace tandem::cli
