// Matrix products that overlap their collective, from PyTorch's dispatcher to the C API. They run with plans that the
// kernels in Python made (tandem/torch/_matmul.py), and serve no call that needs a copy, a check or a new plan.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "problem.h"

namespace tandem::python {
namespace {

using torch::stable::Tensor;

struct KeptPlan {
  std::vector<std::int64_t> problem;  // as problem_of gives it
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

// The type of PyTorch for results of a scaled product.
std::int32_t torch_type(tandem_dtype type) {
  return type == TANDEM_F16 ? aoti_torch_dtype_float16() : aoti_torch_dtype_bfloat16();
}

// Pointers to the memory of tensors.
std::vector<const void*> addresses(Tensors tensors) {
  std::vector<const void*> found;
  found.reserve(tensors.size());
  for (const Tensor& one : tensors) found.push_back(one.const_data_ptr());
  return found;
}

// The results, and the gathered x behind them if it is kept. On CPUs it returns when they are there. None of them:
// tandem_torch_status() has the reason, and where this is no error, the kernel in Python does the call.
std::vector<Tensor> products(const Tensor& x, const std::vector<Tensor>& tensors, std::int64_t code, std::int64_t plans,
                             std::int64_t stream) {
  last_status = TANDEM_SUCCESS;
  const ProductCall call(code);
  auto& own = *handle<KeptPlans*>(plans);
  const auto problem = problem_of(call, own.pes, x, tensors);
  if (problem.empty()) return {};
  const KeptPlan* found = own.find(problem);
  const std::int64_t k = x.size(x.dim() - 1);
  const std::int64_t m = x.numel() / k * (call.gathers() ? own.pes : 1);
  if (found == nullptr || m > found->most_rows) return {};

  std::vector<std::int64_t> sizes(x.dim());
  for (std::int64_t axis = 0; axis < x.dim(); ++axis) sizes[axis] = x.size(axis);
  if (call.gathers()) sizes[0] *= own.pes;
  if (call.operation == TANDEM_GEMM_REDUCE_SCATTER) {
    if (sizes[0] % own.pes != 0) return {};
    sizes[0] /= own.pes;
  }
  tandem_run run{};
  run.m = static_cast<std::size_t>(m);
  run.a = x.const_data_ptr();
  std::vector<Tensor> results;
  std::vector<void*> c;
  for (const Tensor& w : call.weights(tensors)) {
    sizes.back() = w.size(1);
    results.push_back(call.is_scaled ? empty(sizes, x, torch_type(call.out_type)) : empty(sizes, x));
    c.push_back(results.back().mutable_data_ptr());
  }
  if (call.keeps) {
    sizes.back() = k;
    run.gathered = results.emplace_back(empty(sizes, x)).mutable_data_ptr();
  }
  const auto b = addresses(call.weights(tensors)), bias = addresses(call.biases(tensors));
  std::vector<const float*> scales;
  for (const Tensor& one : call.scales(tensors)) scales.push_back(static_cast<const float*>(one.const_data_ptr()));
  run.b = b.data();
  run.c = c.data();
  run.bias = bias.empty() ? nullptr : bias.data();
  if (call.is_scaled) {
    run.a_scale = scales.front();
    run.b_scale = scales.data() + 1;
  }
  last_status = library.plan_run_with(found->plan, &run, handle<void*>(stream));
  if (last_status == TANDEM_SUCCESS && x.is_cpu()) last_status = library.synchronize(own.world, nullptr);
  if (last_status != TANDEM_SUCCESS) results.clear();
  return results;
}

}  // namespace
}  // namespace tandem::python

STABLE_TORCH_LIBRARY_FRAGMENT(tandem, m) {
  m.def("_products(Tensor x, Tensor[] tensors, int code, int plans, int stream) -> Tensor[]");
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
