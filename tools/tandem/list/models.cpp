// Dimensions: "The Llama 3 Herd of Models" (arXiv 2407.21783), table 3, and Triton-distributed's tutorial 07.
#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/options/usage_message.h"

namespace tandem::cli {
namespace {

struct Llama {
  const char* name;
  Size hidden;
  Size intermediate;
  Size heads;
  Size kv_heads;  // grouped-query attention: fewer key and value heads than query heads
};
constexpr Size kHeadSize = 128;
constexpr Llama kLlamas[] = {
    {"llama3-8b", 4096, 14336, 32, 8},
    {"llama3-70b", 8192, 28672, 64, 8},
    {"llama3-405b", 16384, 53248, 128, 8},
};

std::vector<Layer> make_layers() {
  std::vector<Layer> all;
  for (const Llama& model : kLlamas) {
    const auto add = [&](const char* layer, const char* meaning, Size n, Size k) {
      all.push_back({fmt::format("{}:{}", model.name, layer), meaning, n, k});
    };
    add("qkv", "query, key and value projections in one", (model.heads + 2 * model.kv_heads) * kHeadSize, model.hidden);
    add("o", "attention's output projection", model.hidden, model.heads * kHeadSize);
    add("ffn_up", "gate and up projections in one", 2 * model.intermediate, model.hidden);
    add("ffn_down", "down projection", model.hidden, model.intermediate);
  }
  all.push_back({"tutorial07", "Triton-distributed's tutorial 07", 49152, 12288});
  return all;
}

}  // namespace

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all = make_layers();
  return all;
}

Shape layer_shape(const std::string& name) {
  const auto found = std::find_if(layers().begin(), layers().end(), [&](const Layer& l) { return l.name == name; });
  if (found != layers().end()) return {kModelRows, found->n, found->k};
  std::vector<std::string> names;
  for (const Layer& layer : layers()) names.push_back(layer.name);
  throw InvalidArgument(not_one_of("--model", name, names));
}

}  // namespace tandem::cli
