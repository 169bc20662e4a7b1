#pragma once
/// Calls of streams that address PEs of other nodes: one-warp kernels that post requests to the proxy, in stream order.
/// They can be captured.

#include "base/cuda_names.h"
#include "tandem/impl/cuda/comparison.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/mail/mail.h"
#include "tandem/signal.h"

namespace tandem::cuda {

/// Copies to or from the memory of a PE of another node. Later work in the stream finds the copy complete.
void launch_far_copy(cudaStream_t stream, const Context& context, const MailLink& mail, void* to, const void* from,
                     Size bytes);
/// Writes a signal word on another node. With `from` the value is read there.
void launch_far_signal(cudaStream_t stream, const Context& context, const MailLink& mail, Signal* word,
                       const Epoch* from, Epoch value);
/// As launch_comparison, in a world of several nodes.
void launch_far_comparison(cudaStream_t stream, const Context& context, const MailLink& mail,
                           const Comparison& comparison);
/// Loads all on the current device.
void load_mail_kernels();

}  // namespace tandem::cuda
