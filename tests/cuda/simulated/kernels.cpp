// A replacement of the kernels. Waits behave like the kernels' waits (tandem/impl/cuda/patience.cuh), and the test of
// the links finds no wrong word. There are no collectives and GEMMs, but plans of two_shot with f32 can be made.
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "collectives/all_reduce/two_shot.h"
#include "cuda/device/gemm.h"
#include "cuda/device/register.h"
#include "cuda/device/self_test.h"
#include "cuda/device/signal_kernels.h"
#include "cuda/profile/clock_kernels.h"
#include "cuda/profile/recorded_kernels.h"
#include "cuda/profile/recorded_signals.h"
#include "cuda/simulated/gpus.h"
#include "tandem/error.h"
#include "tandem/impl/cuda/standstill.h"

namespace tandem {

namespace {

std::atomic<bool> has_gemm_kernels{false};
std::atomic<bool> has_hooks{true};

}  // namespace

void test::have_gemm_kernels(bool have) { has_gemm_kernels = have; }
void test::have_hooked_gemms(bool have) { has_hooks = have; }

}  // namespace tandem

namespace tandem::cuda {

namespace {

std::atomic_ref<std::uint32_t> abort_of(const Context& context, int pe) {
  auto* const first = reinterpret_cast<std::byte*>(context.abort_on_pe0);
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(first + pe * context.abort_stride));
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

void give_up(const Context& context, const Signal* word, Epoch expected, Epoch found, std::uint64_t now) {
  const auto by = static_cast<std::uint32_t>(context.world_pe) + 1;
  *context.report = {0, 0, word, expected, found, pe_without_wait(context, now), 0, {}};
  std::atomic_ref(context.report->set) = kWaitedInVain;
  for (int pe = 0; pe < context.world_pes; ++pe) abort_of(context, pe) = by;
}

}  // namespace

void launch_wait(cudaStream_t, const Context& context, const Signal* word, Epoch value) {
  const std::uint64_t begin = now_ns();
  const std::atomic_ref signal(const_cast<Epoch&>(word->value));
  for (Epoch found; (found = signal.load()) < value;) {
    if (const std::uint32_t by = abort_of(context, context.world_pe)) {
      context.report->ended = {1, 0, word, value, found};
      std::atomic_ref(context.report->ended_by) = by;
      return;
    }
    const std::uint64_t now = now_ns();
    if (now - begin >= kLastsNs && (stands_still(context, begin, now) || now - begin >= context.arrival_timeout_ns))
      return give_up(context, word, value, found, now);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void launch_write(cudaStream_t, Signal* word, Epoch value) { std::atomic_ref(word->value) = value; }
void launch_comparison(cudaStream_t, const Context&, const Comparison&) {}
void launch_nothing(cudaStream_t) {}
void load_signal_kernels() {
  if (test::failure_of("load_signal_kernels") != CUDA_SUCCESS)
    throw RuntimeFailure("loading kernels: simulated failure");
}

void launch_self_test_writes(cudaStream_t, const SelfTest&) {}
void launch_self_test_reads(cudaStream_t, const SelfTest&, std::uint32_t*) {}

void launch_ping(cudaStream_t, Mail*, Mail*, trace::Exchange*, int, std::uint32_t) {}
void launch_pong(cudaStream_t, Mail*, Mail*, int, std::uint32_t) {}
void launch_answers(cudaStream_t, HostMail*, int, std::uint32_t) {}
void load_clock_kernels() {}
void launch_recorded_write(cudaStream_t, const RecordArea&, Signal*, Epoch) {}
void launch_recorded_wait(cudaStream_t, const RecordArea&, const Context&, const Signal*, Epoch) {}
void launch_stamp(cudaStream_t, const RecordArea&) {}
void load_recorded_signals() {}

void register_library_kernels() {
  using Kernel = kernels::AllReduceTwoShot<float>;
  static const detail::DeviceKernel never_launched{512, [](const detail::DeviceLaunch&) {}, [] { return 1; }};
  static std::once_flag once;
  std::call_once(once, [] { add_kernel("two_shot", detail::DeviceKernelOf<Kernel>::kernel, never_launched); });
}
void register_profiled_library_kernels() { register_library_kernels(); }

void check_hooked_gemm(const Gemm&) {
  if (!has_hooks) throw Unsupported("gemm: no kernels with hooks on these simulated GPUs");
}
void check_gemm(const Gemm&, int) {}
const DecodeKernel* decode_kernel(const Gemm&, int) { return nullptr; }
bool has_own_kernel(const Gemm&) { return has_gemm_kernels; }
const GemmKernel& find_gemm_kernel(const Gemm&) { throw Unsupported("gemm: not on simulated GPUs"); }

}  // namespace tandem::cuda
