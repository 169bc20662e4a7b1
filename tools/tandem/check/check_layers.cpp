// Layers of operators that follow each other, under `tandem check`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "check/run_once.h"
#include "tools/tandem/check/check_cases.h"
#include "tools/tandem/check/layers.h"

namespace tandem::cli {
namespace {

class LayersProgram final : public CheckProgram {
 public:
  LayersProgram(const Layers<float>::Options& options, int pes) : options_(options), pes_(pes) {}

  void run(World& world) const override {
    const Size most = 16 * pes_ - 3;
    Layers<float> layers(world, {most, 32, Size{8} * pes_}, options_);
    const std::array<Size, 3> steps{most, 1, most / 2 + 3};
    const Size bytes = layers.x_elements(most) * Size{sizeof(float)};
    auto* const inputs = world.heap().allocate_local<std::byte>(bytes * Size{steps.size()}, "inputs");
    auto* const results = world.heap().allocate_local<std::byte>(bytes * Size{steps.size()}, "results");
    for (std::size_t i = 0; i < steps.size(); ++i)
      world.copy_in(inputs + static_cast<Size>(i) * bytes, layers.input(static_cast<std::uint32_t>(i)).data(), bytes);
    Stream stream = world.make_stream("main");
    const auto run = [&](const std::function<void()>& between) {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        stream.copy_async(layers.x(), inputs + static_cast<Size>(i) * bytes, bytes);
        layers.enqueue(stream, steps[i], between);
        stream.copy_async(results + static_cast<Size>(i) * bytes, layers.x(), bytes);
      }
      stream.synchronize();
      std::vector<std::byte> host(static_cast<std::size_t>(bytes) * steps.size());
      world.copy_out(host.data(), results, static_cast<Size>(host.size()));
      return host;
    };
    const std::vector<std::byte> alone = run([&] {
      stream.synchronize();
      world.barrier();
    });
    const std::vector<std::byte> together = run([] {});
    const auto count = static_cast<std::size_t>(layers.x_elements(most));
    std::vector<float> first(count);
    std::memcpy(first.data(), alone.data(), count * sizeof(float));
    const bool is_finite = std::all_of(first.begin(), first.end(), [](float x) { return std::isfinite(x); });
    if (!is_finite || (count > 0 && first == layers.input(0)))
      throw checker::WrongResult(world.pe(), "the layers have no result");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::size_t at = i * static_cast<std::size_t>(bytes);
      const auto of_step = static_cast<std::size_t>(layers.x_elements(steps[i])) * sizeof(float);
      if (std::memcmp(alone.data() + at, together.data() + at, of_step) != 0)
        throw checker::WrongResult(world.pe(),
                                   fmt::format("{} rows: PE {} has other bits than one by one", steps[i], world.pe()));
    }
  }

 private:
  Layers<float>::Options options_;
  int pes_;
};

struct LayersVariant {
  const char* name;
  CopyBy copy_by;
  Direction direction;
  Reduction reduction;
  bool shares_memory = false;
};
constexpr std::array kVariants{
    LayersVariant{"ce", CopyBy::kCopyEngine, Direction::kPush, Reduction::kOwner},
    LayersVariant{"ce_pull", CopyBy::kCopyEngine, Direction::kPull, Reduction::kOwner},
    LayersVariant{"ce_chain", CopyBy::kCopyEngine, Direction::kPush, Reduction::kChain},
    LayersVariant{"sm", CopyBy::kSm, Direction::kPush, Reduction::kOwner},
    LayersVariant{"sm_pull", CopyBy::kSm, Direction::kPull, Reduction::kOwner},
    LayersVariant{"sm_chain", CopyBy::kSm, Direction::kPush, Reduction::kChain},
    LayersVariant{"ce_shared", CopyBy::kCopyEngine, Direction::kPush, Reduction::kOwner, true},
    LayersVariant{"ce_chain_shared", CopyBy::kCopyEngine, Direction::kPush, Reduction::kChain, true},
    LayersVariant{"sm_pull_shared", CopyBy::kSm, Direction::kPull, Reduction::kOwner, true},
};

/// Such a chain needs kernels beside its GEMM (check_operators.cpp).
bool has_copied_chain(const LayersVariant& variant) {
  return variant.copy_by == CopyBy::kCopyEngine && variant.reduction == Reduction::kChain;
}

/// Sets the options that the caller left open.
Layers<float>::Options options_of(const LayersVariant& variant) {
  OperatorOptions o;
  o.form = Form::kOverlapped;
  o.copy_by = variant.copy_by;
  o.direction = variant.direction;
  o.reduction = variant.reduction;
  o.tile_m = 8;
  o.tile_n = 16;
  o.splits = 2;
  o.use_tuned = false;
  Layers<float>::Options all{o, o, o, variant.shares_memory};
  all.gather.reduction.reset();  // it reduces nothing
  all.gather.communication_sms = variant.copy_by == CopyBy::kSm ? 2 : -1;
  if (variant.reduction == Reduction::kOwner) all.scatter.communication_sms = all.reduce.communication_sms = 2;
  all.reduce.shots = 2;
  return all;
}

/// Leaves everything open, so each operator takes the form for its rows.
Layers<float>::Options open_options() {
  OperatorOptions o;
  o.tile_m = 8;
  o.tile_n = 16;
  o.use_tuned = false;
  return {o, o, o};
}

}  // namespace

void add_layers_cases(std::vector<CheckCase>& cases, int pes) {
  for (const int pes_per_node : node_sizes(pes)) {
    CheckCase one;
    one.machine = machine_for(pes);
    one.pes = pes;
    one.pes_per_node = pes_per_node;
    one.op = "layers";
    one.has_twin = true;  // the operators' own cases cover it
    const auto add = [&](const char* name, const Layers<float>::Options& options, bool one_kernel_at_a_time = true) {
      one.one_kernel_at_a_time = one_kernel_at_a_time;
      one.algorithm = name;
      one.make = [options, pes] { return std::make_unique<LayersProgram>(options, pes); };
      cases.push_back(one);
    };
    add("suitable", open_options());
    for (const LayersVariant& variant : kVariants)
      if (pes_per_node == 0 || variant.reduction == Reduction::kOwner)
        add(variant.name, options_of(variant), !has_copied_chain(variant));
  }
}

}  // namespace tandem::cli
