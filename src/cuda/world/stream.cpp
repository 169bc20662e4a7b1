#include "cuda/world/stream.h"

#include <fmt/format.h>

#include "cuda/device/gather_rows.h"
#include "cuda/device/gemm.h"
#include "cuda/device/mail_kernels.h"
#include "cuda/device/nodes_kernels.h"
#include "cuda/device/self_test.h"
#include "cuda/device/signal_kernels.h"
#include "cuda/driver/device_guard.h"
#include "cuda/driver/error.h"
#include "gemm/contract/groups.h"

namespace tandem::cuda {

CudaStream::CudaStream(int device) {
  use_.device = device;
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

CudaStream::CudaStream(world::StreamUse use, Profiler* profiler) : use_(std::move(use)), profiler_(profiler) {
  const DeviceGuard current(use_.device);
  if (use_.sharing > 1) queue_.emplace(use_.device, use_.sharing, fmt::format("'{}' on PE {}", use_.name, use_.pe));
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  // A stream's first launch may have to wait for kernels that run on the GPU. On a shared GPU these may wait for this
  // launch.
  launch_nothing(stream_);
  check(cudaStreamSynchronize(stream_), "cudaStreamCreate");
}

CudaStream::CudaStream(world::StreamUse use, Profiler* profiler, cudaStream_t stream)
    : use_(std::move(use)), profiler_(profiler), stream_(stream), is_own_(false) {}

CudaStream::~CudaStream() {
  if (is_own_) cudaStreamDestroy(stream_);
}

void CudaStream::launch(const detail::KernelLaunch& kernel, const Context& context) {
  const DeviceGuard current(use_.device);
  detail::DeviceLaunch launch{kernel.grid.blocks, &context, kernel.args, stream_, use_.early_launch};
  detail::KernelLaunch formed = kernel;
  if (mail() != nullptr) {
    launch.mail = mail();
    formed.device = find_nodes_form(kernel.device);
  }
  if (auto* const profiler = this->profiler())
    profiler->launch(named(), formed, launch);
  else
    formed.device->launch(launch);
}

void CudaStream::gemm(const Gemm& gemm, const Context& context) {
  const DeviceGuard current(use_.device);
  auto* const profiler = this->profiler();
  const int sms = use_.sms;
  const SkinnyKernel* const decode = skinny_kernel(gemm, sms);
  // cuBLASLt's kernels are loaded at their first call, which waits for kernels that run on the GPU. On a shared GPU
  // these may wait for this call, and between nodes for a proxy, whose copies need the driver meanwhile. The library's
  // own kernels are loaded already.
  const bool may_load = use_.sharing == 1 && mail() == nullptr;
  const bool is_for_cublas = decode == nullptr && (may_load || !has_own_kernel(gemm));
  if (is_for_cublas && plain_gemms_.takes(gemm)) {
    if (profiler != nullptr) profiler->note_work(named(), "gemm", trace::SpanKind::kCompute, 0);
    return plain_gemms_.run(gemm, stream_);
  }
  check_gemm(gemm, sms);
  const auto start = decode != nullptr ? decode->launch : find_gemm_kernel(gemm).launch;
  if (gemm.m == 0 || gemm.n == 0) return;
  const bool gathers = gemm.groups.count > 0 && gemm.groups.a_rows != nullptr;
  const Gemm computed = gathers ? gather_rows(gemm, sms, stream_) : gemm;
  GemmLaunch launch{&computed, &context, gemm.sms > 0 ? gemm.sms : sms, use_.early_launch, stream_, {}};
  if (profiler != nullptr) launch.record = profiler->note_kernel(named(), gemm_name(gemm), context.team, launch.sms);
  start(launch);
}

bool CudaStream::adds_up(const Gemm& gemm) const {
  const DeviceGuard current(use_.device);
  Gemm asked = gemm;
  asked.a = asked.b = nullptr;
  GemmSum sum = gemm.destination.sum() != nullptr ? *gemm.destination.sum() : GemmSum{};
  sum.c = nullptr;
  asked.destination = sum;
  // All PEs need the same answer. A PE that adds up here and one that does not would wait for each other.
  return skinny_kernel(asked, use_.sms) != nullptr;
}

void CudaStream::copy(const world::Context& context, void* to, const void* from, Size bytes) {
  const DeviceGuard current(use_.device);
  auto* const profiler = this->profiler();
  if (is_far(to) || is_far(from)) {
    if (profiler != nullptr) profiler->note_work(named(), "copy", trace::SpanKind::kKernel, bytes);
    return launch_far_copy(stream_, context, *mail(), to, from, bytes);
  }
  if (profiler != nullptr) profiler->note_work(named(), "copy", trace::SpanKind::kCopy, bytes);
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_), "copy_async");
  if (profiler != nullptr) profiler->note_copy_end(named());
}

void CudaStream::write_signal(const Context& context, Signal* word, const Epoch* from, Epoch value) {
  // A copy of eight bytes keeps to the copy engine: behind a copy it takes 2.5 us, a kernel 11 us (bench/NOTES.md).
  // Stream order makes earlier work visible first (tests/gpu/memory/litmus_gpu_check.cpp).
  const DeviceGuard current(use_.device);
  auto* const profiler = this->profiler();
  if (is_far(word)) {
    if (profiler != nullptr) profiler->note_work(named(), "signal", trace::SpanKind::kKernel, 0);
    launch_far_signal(stream_, context, *mail(), word, from, value);
  } else if (from != nullptr) {
    if (profiler != nullptr) profiler->note_copied_signal(named(), word);
    check(cudaMemcpyAsync(word, from, sizeof(Epoch), cudaMemcpyDeviceToDevice, stream_), "write_signal");
    if (profiler != nullptr) profiler->note_copy_end(named());
  } else if (profiler != nullptr) {
    profiler->write_signal(named(), word, value);
  } else {
    launch_write(stream_, word, value);
  }
}

void CudaStream::wait_signal(const Context& context, const Signal* word, Epoch value) {
  const DeviceGuard current(use_.device);
  if (auto* const profiler = this->profiler())
    profiler->wait_signal(named(), context, word, value);
  else
    launch_wait(stream_, context, word, value);
}

std::shared_ptr<detail::EventState> CudaStream::record() {
  const DeviceGuard current(use_.device);
  auto state = std::make_shared<CudaEvent>();
  check(cudaEventCreateWithFlags(&state->event, cudaEventDisableTiming), "cudaEventCreate");
  if (auto* const profiler = this->profiler()) profiler->note_record(named(), state.get());
  check(cudaEventRecord(state->event, stream_), "cudaEventRecord");
  return state;
}

void CudaStream::wait(const std::shared_ptr<detail::EventState>& event) {
  const DeviceGuard current(use_.device);
  if (auto* const profiler = this->profiler()) profiler->note_wait(named(), event.get());
  check(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(*event).event), "cudaStreamWaitEvent");
}

void CudaStream::compare_calls(const Context& context, const detail::CallComparison& comparison) {
  const DeviceGuard current(use_.device);
  if (auto* const profiler = this->profiler()) profiler->note_work(named(), "agree", trace::SpanKind::kKernel, 0);
  const Comparison own{comparison.words, comparison.calls.words, comparison.signature,
                       static_cast<Epoch>(comparison.count)};
  if (mail() != nullptr)
    launch_far_comparison(stream_, context, *mail(), own);
  else
    launch_comparison(stream_, context, own);
}

void CudaStream::synchronize() {
  const DeviceGuard current(use_.device);
  if (auto* const profiler = this->profiler()) profiler->note_synchronize(named());
  check(cudaStreamSynchronize(stream_), "synchronize");
}

void CudaStream::copy_host(void* to, const void* from, Size bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_), "copy");
}

void CudaStream::fill(void* memory, int byte, Size bytes) {
  check(cudaMemsetAsync(memory, byte, static_cast<std::size_t>(bytes), stream_), "cudaMemset");
}

void CudaStream::end_waits(const Context& context) noexcept {
  // This is a copy, since a kernel would have to find room beside those that wait. It may read its source later.
  static const std::uint32_t by_host = kAbortedByHost;
  try {
    const DeviceGuard current(use_.device);
    cudaMemcpyAsync(context.abort, &by_host, sizeof(by_host), cudaMemcpyHostToDevice, stream_);
  } catch (const RuntimeFailure&) {
    // No thread waits for a GPU that is lost.
  }
}

void CudaStream::write_patterns(const world::SelfTest& test) { launch_self_test_writes(stream_, test); }

void CudaStream::read_patterns(const world::SelfTest& test, std::uint32_t* wrong) {
  launch_self_test_reads(stream_, test, wrong);
}

}  // namespace tandem::cuda
