// Matrix products that overlap their collective, from PyTorch's dispatcher to the C API. They run with plans that the
// kernels in Python made (tandem/torch/_matmul.py), and serve no call that needs a copy, a check or a new plan.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "call.h"

namespace tandem::python {
namespace {

using torch::stable::Tensor;
constexpr std::int64_t kAlignment = 16;  // of addresses and rows, in bytes

struct KeptPlan {
  std::vector<std::int64_t> problem;  // operator, type, layout, activation, depth, and columns of each weight
  tandem_plan* plan;
  std::int64_t most_rows;
};

// The plans of one world. Calls of it take turns: Python holds the world's lock.
struct KeptPlans {
  tandem_world* world;
  std::int64_t pes;
  std::vector<KeptPlan> kept;

  KeptPlan* find(const std::vector<std::int64_t>& problem) {
    const auto found = std::find_if(kept.begin(), kept.end(), [&](const auto& one) { return one.problem == problem; });
    return found == kept.end() ? nullptr : &*found;
  }
};

// A call in one number, as for collectives.
struct ProductCall {
  explicit ProductCall(std::int64_t code)
      : operation(static_cast<tandem_operator>(code & 0xff)), activation(code >> 8 & 0xff), keeps(code >> 16 != 0) {}
  tandem_operator operation;
  std::int64_t activation;
  bool keeps;  // the gathered x is the last result
};

std::int32_t type_of(const Tensor& x) {
  std::int32_t type = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(x.get(), &type));
  return type;
}

// The library's name of a type of x, or none for one without operator.
std::optional<tandem_dtype> named(std::int32_t type) {
  if (type == aoti_torch_dtype_bfloat16()) return TANDEM_BF16;
  if (type == aoti_torch_dtype_float16()) return TANDEM_F16;
  if (type == aoti_torch_dtype_float32()) return TANDEM_F32;
  return std::nullopt;
}

// Whether the library takes this memory as it is, beside that of `x`.
bool is_beside(const Tensor& one, const Tensor& x) {
  return type_of(one) == type_of(x) && one.is_cpu() == x.is_cpu() && one.is_cuda() == x.is_cuda() &&
         one.get_device_index() == x.get_device_index() &&
         reinterpret_cast<std::uintptr_t>(one.const_data_ptr()) % kAlignment == 0;
}

// The layout of a k x n matrix, or none where it has gaps.
std::optional<tandem_layout> layout_of(const Tensor& w) {
  if (w.stride(0) == 1 && w.stride(1) == w.size(0)) return TANDEM_N_X_K;
  if (w.stride(1) == 1 && w.stride(0) == w.size(1)) return TANDEM_K_X_N;
  return std::nullopt;
}

// Whether rows of so many elements are whole units of the library.
bool is_whole(std::int64_t length, tandem_dtype type) {
  return length * (type == TANDEM_F32 ? 4 : 2) % kAlignment == 0;
}

// The problem of a call over all PEs, as the kernel in Python has it. Empty: these tensors need that kernel.
std::vector<std::int64_t> problem_of(const ProductCall& call, std::int64_t pes, const Tensor& x,
                                     const std::vector<Tensor>& weights, const std::vector<Tensor>& biases) {
  const auto type = named(type_of(x));
  if (!type || x.dim() < 2 || x.numel() == 0 || !x.is_contiguous() || !is_beside(x, x) || weights.empty() ||
      (!biases.empty() && biases.size() != weights.size()))
    return {};
  const bool gathers = call.operation == TANDEM_ALL_GATHER_GEMM;
  const std::int64_t k = x.size(x.dim() - 1);
  if (!is_whole(k, *type)) return {};
  std::vector<std::int64_t> problem{call.operation, *type, 0, call.activation, gathers ? k : k * pes};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Tensor& w = weights[i];
    if (w.dim() != 2 || w.size(0) != k || !is_whole(w.size(1), *type) || !is_beside(w, x)) return {};
    const auto layout = layout_of(w);
    if (!layout || (i > 0 && *layout != problem[2])) return {};
    if (!biases.empty() && (biases[i].dim() != 1 || biases[i].size(0) != w.size(1) || !biases[i].is_contiguous() ||
                            !is_beside(biases[i], x)))
      return {};
    problem[2] = *layout;
    problem.push_back(gathers ? w.size(1) * pes : w.size(1));
  }
  return problem;
}

// The results, and the gathered x behind them if it is kept. On CPUs it returns when they are there. None of them:
// tandem_torch_status() has the reason, and where this is no error, the kernel in Python does the call.
std::vector<Tensor> products(const Tensor& x, const std::vector<Tensor>& weights, const std::vector<Tensor>& biases,
                             std::int64_t code, std::int64_t plans, std::int64_t stream) {
  last_status = TANDEM_SUCCESS;
  const ProductCall call(code);
  auto& own = *handle<KeptPlans*>(plans);
  const auto problem = problem_of(call, own.pes, x, weights, biases);
  if (problem.empty()) return {};
  const KeptPlan* found = own.find(problem);
  const bool gathers = call.operation == TANDEM_ALL_GATHER_GEMM;
  const std::int64_t k = x.size(x.dim() - 1);
  const std::int64_t m = x.numel() / k * (gathers ? own.pes : 1);
  if (found == nullptr || m > found->most_rows) return {};

  std::vector<std::int64_t> sizes(x.dim());
  for (std::int64_t axis = 0; axis < x.dim(); ++axis) sizes[axis] = x.size(axis);
  if (gathers) sizes[0] *= own.pes;
  if (call.operation == TANDEM_GEMM_REDUCE_SCATTER) {
    if (sizes[0] % own.pes != 0) return {};
    sizes[0] /= own.pes;
  }
  tandem_run run{};
  run.m = static_cast<std::size_t>(m);
  run.a = x.const_data_ptr();
  std::vector<Tensor> results;
  std::vector<const void*> b;
  std::vector<void*> c;
  std::vector<const void*> bias;
  for (const Tensor& w : weights) {
    sizes.back() = w.size(1);
    b.push_back(w.const_data_ptr());
    c.push_back(results.emplace_back(empty(sizes, x)).mutable_data_ptr());
  }
  bias.reserve(biases.size());
  for (const Tensor& one : biases) bias.push_back(one.const_data_ptr());
  if (call.keeps) {
    sizes.back() = k;
    run.gathered = results.emplace_back(empty(sizes, x)).mutable_data_ptr();
  }
  run.b = b.data();
  run.c = c.data();
  run.bias = bias.empty() ? nullptr : bias.data();
  last_status = library.plan_run_with(found->plan, &run, handle<void*>(stream));
  if (last_status == TANDEM_SUCCESS && x.is_cpu()) last_status = library.synchronize(own.world, nullptr);
  if (last_status != TANDEM_SUCCESS) results.clear();
  return results;
}

}  // namespace
}  // namespace tandem::python

STABLE_TORCH_LIBRARY_FRAGMENT(tandem, m) {
  m.def("_products(Tensor x, Tensor[] weights, Tensor[] biases, int code, int plans, int stream) -> Tensor[]");
}
STABLE_TORCH_LIBRARY_IMPL(tandem, CPU, m) { m.impl("_products", TORCH_BOX(&tandem::python::products)); }
STABLE_TORCH_LIBRARY_IMPL(tandem, CUDA, m) { m.impl("_products", TORCH_BOX(&tandem::python::products)); }

extern "C" {

// An empty list of plans for a world.
void* tandem_torch_plans_create(tandem_world* world, std::int64_t pes) {
  return new tandem::python::KeptPlans{world, pes, {}};  // NOLINT(cppcoreguidelines-owning-memory): Python's
}

// Ends a list, but none of its plans.
void tandem_torch_plans_destroy(void* plans) {
  delete static_cast<tandem::python::KeptPlans*>(plans);  // NOLINT(cppcoreguidelines-owning-memory): Python's
}

// Adds a plan for up to `most_rows` of a problem, or puts it in the place of the former one.
void tandem_torch_plans_keep(void* plans, tandem_plan* plan, std::int64_t most_rows, const std::int64_t* problem,
                             std::int64_t count) {
  auto& own = *static_cast<tandem::python::KeptPlans*>(plans);
  const std::vector<std::int64_t> key(problem, problem + count);
  tandem::python::KeptPlan made{key, plan, most_rows};
  if (auto* former = own.find(key))
    *former = std::move(made);
  else
    own.kept.push_back(std::move(made));
}
}
