#pragma once
/// Parts of runs whose rows are normed, with exact results (NormExample).

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "operators/reference/normed_runs.h"
#include "tandem/layer/all_reduce_norm.h"

namespace tandem::ops {

/// Returns the options of the example for the steps of an operator. `type` is that of its inputs.
inline AllReduceNormOptions example_of_steps(const OperatorOptions& o, DType type, Quantisation quantisation) {
  AllReduceNormOptions norm;
  norm.type = type;
  norm.hidden = o.n;
  norm.max_rows = o.m;
  norm.norm = o.norm.norm;
  norm.epsilon = o.norm.epsilon;
  norm.residual = o.norm.residual;
  norm.norm_bias = o.norm.norm_bias;
  norm.sum = o.norm.sum;
  norm.quantisation = quantisation;
  if (quantisation == Quantisation::kStatic) norm.scale = o.norm.scale;
  return norm;
}

/// Bytes in this PE's memory.
class PeMemory {
 public:
  explicit PeMemory(World& world) : world_(world) {}
  std::byte* room(Size bytes, const char* what) const { return world_.heap().allocate_local<std::byte>(bytes, what); }
  std::byte* copied(const std::vector<std::byte>& bytes, const char* what) const {
    std::byte* const memory = room(static_cast<Size>(bytes.size()), what);
    world_.copy_in(memory, bytes.data(), static_cast<Size>(bytes.size()));
    return memory;
  }
  std::vector<std::byte> read(const void* memory, Size bytes) const {
    std::vector<std::byte> host(static_cast<std::size_t>(bytes));
    world_.copy_out(host.data(), memory, bytes);
    return host;
  }

 private:
  World& world_;
};

/// Prepares a call for each number of rows, runs all of them, and verifies them one by one. Returns the first error.
template <class Prepare, class Run, class Verify>
std::string first_wrong(World& world, Stream& main, const std::vector<Size>& rows, const Prepare& prepare,
                        const Run& run, const Verify& verify) {
  std::vector<decltype(prepare(0))> calls;
  for (std::size_t i = 0; i < rows.size(); ++i) calls.push_back(prepare(static_cast<int>(i)));
  world.barrier();  // no kernel waits while a PE on the same GPU still makes memory
  for (const auto& call : calls) run(call);
  main.synchronize();
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (const std::string text = verify(calls[i]); !text.empty())
      return fmt::format("PE {}, run {} of {} rows: {}", world.pe(), i + 1, rows[i], text);
  return "";
}

}  // namespace tandem::ops
