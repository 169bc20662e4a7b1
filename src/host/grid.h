#pragma once
/// The work of a PE's stream on CPUs: kernels, GEMMs and signals. Each call returns when its work has ended.
///
/// Several threads of a PE may call these functions at the same time. If the PE's abort word is set or a wait times
/// out, blocks end at their next wait, and the call returns. The report in the context holds the reason. Later calls
/// do nothing.

#include <functional>
#include <string>

#include "host/crew.h"
#include "host/recording.h"
#include "tandem/advanced/gemm.h"
#include "tandem/impl/cpu/block.h"
#include "tandem/impl/cuda/comparison.h"
#include "tandem/impl/cuda/context.h"
#include "wire/mailbox.h"

namespace tandem::host {

struct GridRequest {
  std::string name;
  int blocks = 1;
  int threads = 512;  ///< threads of a block, a bound on the sum of its roles' threads
  cuda::Context context;
  std::string machine;  ///< the machine's name, for errors
  bool has_multicast = false;
  std::function<void(cpu::Block&)> body;
  GridThreads by = {};               ///< the threads that run the blocks
  wire::Mailbox* mailbox = nullptr;  ///< of a world of several nodes
  GridRecords* records = nullptr;    ///< with a list for each block; null: nothing is recorded
};

/// Runs all blocks. If a block throws, ends the others and rethrows the exception.
void run_grid(const GridRequest& request);

/// Throws InvalidArgument or Unsupported that names the field which no kernel on `sms` SMs supports.
void check_gemm(const Gemm& gemm, int sms);
/// Returns the blocks of its grid on `sms` SMs.
int gemm_blocks(const Gemm& gemm, int sms);
void run_gemm(const cuda::Context& context, const Gemm& gemm, int sms, const GridThreads& by = {},
              wire::Mailbox* mailbox = nullptr, GridRecords* records = nullptr);

/// Returns whether a copy reaches another node.
bool is_far(const wire::Mailbox* mailbox, const void* to, const void* from);
/// Copies to or from a PE of another node. The copy is complete when the call returns.
void copy_far(const cuda::Context& context, void* to, const void* from, Size bytes, wire::Mailbox& mailbox);

/// Sets a word of this PE or of a peer, with release order at system scope.
void write_signal(const cuda::Context& context, Signal* word, Epoch value, wire::Mailbox* mailbox = nullptr);
/// Blocks until the word is at least `value`.
void wait_signal(const cuda::Context& context, const Signal* word, Epoch value);
/// Sends this PE's call to the team, and compares it with the calls of the other members.
void compare_calls(const cuda::Context& context, const cuda::Comparison& comparison, wire::Mailbox* mailbox = nullptr);

/// Ends the waits of PE `pe` in the name of `by` (see cuda::kAbortedByHost), unless they have been ended before.
void end_waits(const cuda::Context& context, int pe, std::uint32_t by);

}  // namespace tandem::host
