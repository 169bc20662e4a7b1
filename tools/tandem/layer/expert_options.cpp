// The options that all calls of experts share on the command line.
#include "tools/tandem/layer/expert_options.h"

#include <fmt/format.h>

#include "collectives/reference/expert_choices.h"
#include "tandem/error.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/options/usage_message.h"

namespace tandem::cli {

namespace {

// config.json of deepseek-ai/DeepSeek-V3, mistralai/Mixtral-8x7B-v0.1 and Qwen/Qwen3-30B-A3B.
constexpr ExpertModel kModels[] = {{"deepseek-v3:moe", 7168, 256, 8, 2048},
                                   {"mixtral-8x7b:moe", 4096, 8, 2, 14336},
                                   {"qwen3-30b-a3b:moe", 2048, 128, 8, 768}};

}  // namespace

ExpertModel expert_model(const Arguments& a) {
  const std::string text = a.model.value_or(kModels[0].name);
  std::vector<std::string> names;
  for (const ExpertModel& model : kModels) {
    if (text == model.name) return model;
    names.emplace_back(model.name);
  }
  throw InvalidArgument(not_one_of("--model", text, names));
}

ExpertOptions expert_options(const Arguments& a) {
  const ExpertModel model = expert_model(a);
  ExpertOptions o;
  o.type = dtype_option(a, DType::kBF16);
  o.hidden = a.hidden ? parse_size("--hidden", *a.hidden) : model.hidden;
  o.experts = a.experts.value_or(model.experts);
  o.top_k = a.top_k.value_or(model.top_k);
  o.tp_size = a.tp_size.value_or(1);
  o.align = a.align.value_or(1);
  o.blocks = a.blocks.value_or(0);
  try {
    if (a.wire) o.wire = parse_expert_wire(*a.wire);
    if (a.layout) o.layout = parse_expert_layout(*a.layout);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--{}", error.what()));
  }
  return o;
}

kernels::ExpertInput expert_input(const Arguments& a) {
  kernels::ExpertInput input;
  input.routing = a.routing.value_or("random");
  input.seed = a.seed;
  try {
    kernels::check_expert_routing(input.routing);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--{}", error.what()));
  }
  return input;
}

}  // namespace tandem::cli
