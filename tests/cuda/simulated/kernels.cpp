// A replacement of the kernels. Waits behave like the kernels' waits (tandem/impl/cuda/watchdog.cuh), and the test of
// the links finds no wrong word. There are no collectives and GEMMs, but plans of two_shot with f32 can be made.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "cuda/device/gather_rows.h"
#include "cuda/device/gemm.h"
#include "cuda/device/mail_kernels.h"
#include "cuda/device/nodes_kernels.h"
#include "cuda/device/register.h"
#include "cuda/device/self_test.h"
#include "cuda/device/signal_kernels.h"
#include "cuda/profile/clock_kernels.h"
#include "cuda/profile/profiled_kernels.h"
#include "cuda/profile/profiled_signals.h"
#include "cuda/simulated/gpus.h"
#include "tandem/error.h"

namespace tandem {

namespace {

std::atomic<bool> has_gemm_kernels{false};
std::atomic<bool> has_fused{true};
std::array<std::atomic<std::int64_t>, test::kSimulatedGpus> ahead_ns{};

/// Returns what the timer of a GPU shows.
std::uint64_t timer_of(int device) {
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(now.count() + ahead_ns[static_cast<std::size_t>(device)]);
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

}  // namespace

void test::have_gemm_kernels(bool have) { has_gemm_kernels = have; }
void test::have_fused_gemms(bool have) { has_fused = have; }
void test::set_ahead(int device, std::int64_t ns) { ahead_ns[static_cast<std::size_t>(device)] = ns; }

}  // namespace tandem

namespace tandem::cuda {

void launch_wait(cudaStream_t, const Context&, const Signal*, Epoch) {}
void launch_write(cudaStream_t, Signal*, Epoch) {}
void launch_comparison(cudaStream_t, const Context&, const Comparison&) {}
void launch_nothing(cudaStream_t) {}
void load_signal_kernels() {}
void launch_far_copy(cudaStream_t, const Context&, const MailLink&, void*, const void*, Size) {}
void launch_far_signal(cudaStream_t, const Context&, const MailLink&, Signal*, const Epoch*, Epoch) {}
void launch_far_comparison(cudaStream_t, const Context&, const MailLink&, const Comparison&) {}
void load_mail_kernels() {}

void launch_self_test_writes(cudaStream_t, const SelfTest&) {}
void launch_self_test_reads(cudaStream_t, const SelfTest&, std::uint32_t*) {}

void launch_ping(cudaStream_t, Mail*, Mail*, trace::Exchange*, int, std::uint32_t) {}
void launch_pong(cudaStream_t, Mail*, Mail*, int, std::uint32_t) {}
/// Answers beside the host, which asks after this call.
void launch_answers(cudaStream_t, HostMail* mail, int rounds, std::uint32_t before) {
  std::thread([mail, rounds, before, device = current_device()] {
    for (std::uint32_t i = 1; i <= static_cast<std::uint32_t>(rounds); ++i) {
      while (__atomic_load_n(&mail->question, __ATOMIC_ACQUIRE) != before + i) std::this_thread::yield();
      mail->time = timer_of(device);
      __atomic_store_n(&mail->answer, before + i, __ATOMIC_RELEASE);
    }
  }).detach();
}
void load_clock_kernels() {}
void launch_profiled_write(cudaStream_t, const RecordArea&, Signal*, Epoch) {}
void launch_profiled_wait(cudaStream_t, const RecordArea&, const Context&, const Signal*, Epoch) {}
void launch_stamp(cudaStream_t, const RecordArea& area) {
  *area.records = Record{};
  area.records->begin = timer_of(current_device());
  area.records->kind = RecordKind::kBlock;
}
void load_profiled_signals() {}

void register_library_kernels() {}
void register_profiled_library_kernels() {}
void register_nodes_library_kernels() {}

void check_fused_gemm(const Gemm&) {
  if (!has_fused) throw Unsupported("gemm: no kernels of fused GEMMs on these simulated GPUs");
}
void check_gemm(const Gemm&, int) {}
const SkinnyKernel* skinny_kernel(const Gemm&, int) { return nullptr; }
bool has_own_kernel(const Gemm&) { return has_gemm_kernels; }
Gemm gather_rows(const Gemm& gemm, int, cudaStream_t) { return gemm; }
const GemmKernel& find_gemm_kernel(const Gemm&) { throw Unsupported("gemm: not on simulated GPUs"); }

}  // namespace tandem::cuda
