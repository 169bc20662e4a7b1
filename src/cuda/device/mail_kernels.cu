#include "cuda/device/comparison.cuh"
#include "cuda/device/mail_kernels.h"
#include "cuda/driver/error.h"
#include "cuda/driver/launch.h"
#include "tandem/impl/cuda/mail/mail.cuh"

namespace tandem::cuda {

namespace {

/// Returns the PE of an address in symmetric memory; -1 elsewhere.
__device__ int pe_of(const Context& context, const MailLink& mail, const void* address) {
  const Size from_base = static_cast<const std::byte*>(address) - mail.base;
  if (from_base < 0 || from_base / mail.stride >= context.world_pes) return -1;
  return static_cast<int>(from_base / mail.stride);
}

__global__ void __launch_bounds__(32)
    copy_kernel(const __grid_constant__ Context context, const __grid_constant__ MailLink mail, void* to,
                const void* from, Size bytes) {
  if (threadIdx.x != 0) return;
  const int source = pe_of(context, mail, from);
  if (source >= 0 && !mail.is_near(source)) {
    const std::uint64_t number = post_get(context, mail, to, from, bytes, source);
    if (number != 0) await_proxy(context, &mail.progress->answered, number);
    return;
  }
  post_put(context, mail, to, from, bytes, nullptr, 0, pe_of(context, mail, to), SignalOp::kSet);
  flush_requests(context, mail);
}

__global__ void __launch_bounds__(32)
    signal_kernel(const __grid_constant__ Context context, const __grid_constant__ MailLink mail, const Signal* word,
                  const Epoch* from, Epoch value) {
  if (threadIdx.x != 0) return;
  const Epoch written = from == nullptr ? value : load_relaxed(from);
  post_signal(context, mail, word, written, pe_of(context, mail, word), SignalOp::kSet);
}

__global__ void __launch_bounds__(32)
    comparison_kernel(const __grid_constant__ Context context, const __grid_constant__ MailLink mail,
                      const __grid_constant__ Comparison own) {
  compare_calls(context, own, [&](Signal* there, Epoch count, Epoch sent, int pe) {
    const int world_pe = context.team.world_pe(pe);
    if (mail.is_near(world_pe)) {
      store_relaxed(&there[1].value, count);
      store_release(&there[0].value, sent);
    } else {
      post_signal(context, mail, there + 1, count, world_pe, SignalOp::kSet);
      post_signal(context, mail, there, sent, world_pe, SignalOp::kSet);
    }
  });
}

}  // namespace

void launch_far_copy(cudaStream_t stream, const Context& context, const MailLink& mail, void* to, const void* from,
                     Size bytes) {
  launch_kernel("copy_async", &copy_kernel, dim3(1), 32, stream, context, mail, to, from, bytes);
}

void launch_far_signal(cudaStream_t stream, const Context& context, const MailLink& mail, Signal* word,
                       const Epoch* from, Epoch value) {
  launch_kernel("write_signal", &signal_kernel, dim3(1), 32, stream, context, mail, word, from, value);
}

void launch_far_comparison(cudaStream_t stream, const Context& context, const MailLink& mail,
                           const Comparison& comparison) {
  launch_kernel("agreement", &comparison_kernel, dim3(1), 32, stream, context, mail, comparison);
}

void load_mail_kernels() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, &copy_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &signal_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &comparison_kernel), "loading a kernel");
}

}  // namespace tandem::cuda
