#pragma once
/// What a stream of a PE on CPUs does: kernels, GEMMs and signals, each on the calling thread until it is done.
///
/// Several threads of a PE may call these at the same time. Where somebody gives up (the PE's abort word, or a wait
/// whose time is up), blocks end at their next wait, and the call returns: the report in the context says why. What
/// comes later does nothing.

#include <functional>
#include <string>

#include "tandem/advanced/gemm.h"
#include "tandem/impl/cpu/block.h"
#include "tandem/impl/cuda/comparison.h"
#include "tandem/impl/cuda/context.h"

namespace tandem::host {

struct GridRequest {
  std::string name;
  int blocks = 1;
  int threads = 512;  ///< of a block, which bound its roles
  cuda::Context context;
  std::string machine;  ///< its name, for errors
  bool has_multicast = false;
  std::function<void(cpu::Block&)> body;
};

/// Runs all blocks. Where an exception leaves one, ends the others and throws it.
void run_grid(const GridRequest& request);

/// Throws InvalidArgument or Unsupported naming the field that no kernel on `sms` SMs can do.
void check_gemm(const Gemm& gemm, int sms);
void run_gemm(const cuda::Context& context, const Gemm& gemm, int sms);

/// Sets a word here or on a peer: release at system scope.
void write_signal(const cuda::Context& context, Signal* word, Epoch value);
/// Waits until the word is at least `value`.
void wait_signal(const cuda::Context& context, const Signal* word, Epoch value);
/// Tells the team what this PE calls, and compares it with what the others call.
void compare_calls(const cuda::Context& context, const cuda::Comparison& comparison);

/// Ends the waits of PE `pe` in the name of `by` (see cuda::kAbortedByHost), unless somebody has done so before.
void end_waits(const cuda::Context& context, int pe, std::uint32_t by);

}  // namespace tandem::host
