#include "cuda/world/stream.h"

#include <fmt/format.h>

#include "cuda/device/gemm.h"
#include "cuda/device/signal_kernels.h"
#include "cuda/driver/device_guard.h"
#include "cuda/driver/error.h"
#include "cuda/profile/recording.h"
#include "tandem/error.h"

namespace tandem::cuda {

CudaStream::CudaStream(Pes& pes, int pe, std::string name) : pes_(pes), pe_(pe), name_(std::move(name)) {
  const DeviceGuard current(device());
  if (pes_.sharing() > 1) queue_.emplace(pes_.pe(pe_).device, pes_.sharing(), fmt::format("'{}' on PE {}", name_, pe_));
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  // A stream's first launch may have to wait for what runs on the GPU, and on a shared GPU that may wait for this
  // launch.
  launch_nothing(stream_);
  check(cudaStreamSynchronize(stream_), "cudaStreamCreate");
}

CudaStream::CudaStream(Pes& pes, int pe, cudaStream_t stream) : pes_(pes), pe_(pe), stream_(stream), is_own_(false) {}

CudaStream::~CudaStream() {
  if (is_own_) cudaStreamDestroy(stream_);
}

Recording* CudaStream::recording() const {
  Recording* const recording = pes_.recording();
  return recording != nullptr && recording->is_on(pe_) ? recording : nullptr;
}

Team CudaStream::world_team() const { return pes_.team(pe_); }

void CudaStream::launch(detail::KernelLaunch kernel) {
  pes_.check_launch(kernel);
  if (kernel.team.me < 0)
    throw InvalidArgument(fmt::format("launch of {}: PE {} is not a member of the team", kernel.name, pe_));
  const DeviceGuard current(device());
  const Context context = pes_.context(kernel.team);
  const detail::DeviceLaunch launch{kernel.grid.blocks, &context, kernel.args, stream_, pes_.early_launch()};
  if (auto* const recording = this->recording())
    recording->launch(named(), kernel, launch);
  else
    kernel.device->launch(launch);
}

void CudaStream::gemm(const Gemm& gemm, const Team& team) {
  const DeviceGuard current(device());
  auto* const recording = this->recording();
  const int sms = pes_.machine().gpu.sm_count;
  const DecodeKernel* const decode = decode_kernel(gemm, sms);
  // cuBLASLt's kernels are loaded at their first call, which waits for those that run on the GPU; on a shared one these
  // may wait for this call. The library's are there.
  const bool is_for_cublas = decode == nullptr && (pes_.sharing() == 1 || !has_own_kernel(gemm));
  if (is_for_cublas && plain_gemms_.takes(gemm)) {
    if (recording != nullptr) recording->note_work(named(), "gemm", trace::SpanKind::kCompute, 0);
    return plain_gemms_.run(gemm, stream_);
  }
  check_gemm(gemm, sms);
  const auto start = decode != nullptr ? decode->launch : find_gemm_kernel(gemm).launch;
  if (gemm.m == 0 || gemm.n == 0) return;
  const Context context = pes_.context(team);
  GemmLaunch launch{&gemm, &context, gemm.sms > 0 ? gemm.sms : sms, pes_.early_launch(), stream_, {}};
  if (recording != nullptr)
    launch.record =
        recording->note_kernel(named(), fmt::format("gemm {}x{}x{}", gemm.m, gemm.n, gemm.k), team, launch.sms);
  start(launch);
}

bool CudaStream::adds_up(const Gemm& gemm) const {
  const DeviceGuard current(device());
  Gemm asked = gemm;
  asked.a = asked.b = asked.c = nullptr;
  Epoch calls = 0;
  asked.sum.calls = &calls;
  // The same answer on all PEs: some that add up here and some that do not would wait for each other.
  return decode_kernel(asked, pes_.machine().gpu.sm_count) != nullptr;
}

void CudaStream::copy(void* to, const void* from, Size bytes) {
  if (bytes < 0) throw InvalidArgument(fmt::format("copy_async: {} bytes given, must not be negative", bytes));
  if (bytes == 0) return;
  const DeviceGuard current(device());
  auto* const recording = this->recording();
  if (recording != nullptr) recording->note_work(named(), "copy", trace::SpanKind::kCopy, bytes);
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_), "copy_async");
  if (recording != nullptr) recording->note_copy_end(named());
}

void CudaStream::write_signal(Signal* word, const Epoch* from, Epoch value) {
  // A copy of eight bytes keeps to the copy engine: behind a copy it takes 2.5 us, a kernel 11 us (bench/NOTES.md).
  // Stream order makes what came before visible first (tests/gpu/litmus_gpu_check.cpp).
  const DeviceGuard current(device());
  auto* const recording = this->recording();
  if (from != nullptr) {
    if (recording != nullptr) recording->note_copied_signal(named(), word);
    check(cudaMemcpyAsync(word, from, sizeof(Epoch), cudaMemcpyDeviceToDevice, stream_), "write_signal");
    if (recording != nullptr) recording->note_copy_end(named());
  } else if (recording != nullptr) {
    recording->write_signal(named(), word, value);
  } else {
    launch_write(stream_, word, value);
  }
}

void CudaStream::wait_signal(const Signal* word, Epoch value) {
  const DeviceGuard current(device());
  if (auto* const recording = this->recording())
    recording->wait_signal(named(), pes_.context(world_team()), word, value);
  else
    launch_wait(stream_, pes_.context(world_team()), word, value);
}

std::shared_ptr<detail::EventState> CudaStream::record() {
  const DeviceGuard current(device());
  auto state = std::make_shared<CudaEvent>();
  check(cudaEventCreateWithFlags(&state->event, cudaEventDisableTiming), "cudaEventCreate");
  if (auto* const recording = this->recording()) recording->note_record(named(), state.get());
  check(cudaEventRecord(state->event, stream_), "cudaEventRecord");
  return state;
}

void CudaStream::wait(const std::shared_ptr<detail::EventState>& event) {
  if (event == nullptr) throw InvalidArgument("wait: the event was never recorded");
  const DeviceGuard current(device());
  if (auto* const recording = this->recording()) recording->note_wait(named(), event.get());
  check(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(*event).event), "cudaStreamWaitEvent");
}

void CudaStream::agree(const detail::Agreement& agreement, const Team& team) {
  const DeviceGuard current(device());
  if (auto* const recording = this->recording()) recording->note_work(named(), "agree", trace::SpanKind::kKernel, 0);
  launch_comparison(stream_, pes_.context(team),
                    {agreement.words, agreement.calls.words, agreement.signature, static_cast<Epoch>(agreement.count)});
}

void CudaStream::synchronize() {
  const DeviceGuard current(device());
  if (auto* const recording = this->recording()) recording->note_synchronize(named());
  check(cudaStreamSynchronize(stream_), "synchronize");
  const volatile WaitReport& report = *pes_.pe(pe_).report;
  if (report.set != 0) {
    bootstrap::Failure failure = gave_up(pes_, pe_);
    pes_.give_up(pe_, failure);
    failure.text = fmt::format("PE {}: {}", pe_, failure.text);
    failure.raise();
  }
  const std::uint32_t by = report.ended_by;
  if (auto end = pes_.end(pe_, by == 0 ? std::nullopt : std::optional(by))) {
    if (const std::string own = ended_wait_of(pes_, pe_); !own.empty()) end->text += "; " + own;
    end->raise();
  }
}

}  // namespace tandem::cuda
