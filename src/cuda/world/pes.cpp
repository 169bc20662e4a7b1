#include "cuda/world/pes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "cuda/device/gemm.h"
#include "cuda/device/register.h"
#include "cuda/device/signal_kernels.h"
#include "cuda/driver/device_guard.h"
#include "cuda/driver/error.h"
#include "cuda/profile/recording.h"
#include "cuda/world/stream.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

constexpr double kMostSeconds = 1e6;

/// What plans ask a machine for: the limits of its GPUs.
Machine describe_gpu(int pes, int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  Machine machine;
  machine.name = properties.name;
  machine.pes_per_node = pes;
  machine.gpu.sm_count = properties.multiProcessorCount;
  machine.gpu.max_blocks_per_sm = properties.maxBlocksPerMultiProcessor;
  machine.gpu.max_threads_per_sm = properties.maxThreadsPerMultiProcessor;
  machine.gpu.copy_engines = properties.asyncEngineCount;
  return machine;
}

/// SMs that each PE counts on where several share a GPU. Any kernel of any of them may wait for any other, so all have
/// to find places beside each other, wherever the others lie: a block may take an SM whose neighbour is free, while the
/// GEMM's clusters need pairs. At most a PE has a GEMM and blocks beside it, or as many blocks behind it as it counts
/// on and half as many beside. So there is room where a PE counts on two for every three pairs of its share.
int share_of_gpu(int sms, int sharing) { return sharing == 1 ? sms : std::max(2, sms / (3 * sharing)); }

/// Programmatic dependent launch came with compute capability 9.
bool has_early_launch(int device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major >= 9;
}

/// The environment's, where it has them, else `given`.
double seconds_of(double given, const char* option, const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    if (!(given > 0 && given <= kMostSeconds))
      throw InvalidArgument(fmt::format("{}: {} given, allowed are seconds up to {}", option, given, kMostSeconds));
    return given;
  }
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds > 0 && seconds <= kMostSeconds))
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed are seconds up to {}", variable, text, kMostSeconds));
  return seconds;
}

MemoryKind kind_of(bool control) { return control ? MemoryKind::kControl : MemoryKind::kData; }

}  // namespace

Pe make_pe(int device) {
  Pe pe;
  pe.device = device;
  check(cudaSetDevice(device), "cudaSetDevice");
  check(cudaFree(nullptr), "starting the GPU");
  void* memory = nullptr;
  check(cudaMallocHost(&memory, sizeof(WaitReport)), "cudaMallocHost");
  pe.report.reset(new (memory) WaitReport{});
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  pe.stream.reset(stream);
  return pe;
}

Pes::Pes(int pes, int device, int sharing, const CudaOptions& options)
    : num_pes_(pes),
      sharing_(sharing),
      machine_(describe_gpu(pes, device)),
      gpu_sms_(machine_.gpu.sm_count),
      early_launch_(options.early_launch && sharing == 1 && has_early_launch(device)),
      timeout_s_(seconds_of(options.timeout_s, "timeout_s", "TANDEM_TIMEOUT_S")),
      arrival_timeout_s_(seconds_of(options.arrival_timeout_s, "arrival_timeout_s", "TANDEM_ARRIVAL_TIMEOUT_S")),
      checks_calls_(options.check_calls) {
  machine_.gpu.sm_count = share_of_gpu(gpu_sms_, sharing);
  // PEs that share a GPU share its queues: nothing promises that one's copies do not stand behind another's, which
  // wait.
  if (sharing > 1) machine_.gpu.copy_engines = 0;
}

std::uint32_t* Pes::abort_of(int pe) const {
  return reinterpret_cast<std::uint32_t*>(segment().base() + pe * segment().stride() + kWaitWordsOffset);
}

Context Pes::context(const Team& team) const {
  Context context;
  context.team = team;
  const int me = team.world_pe(team.me);
  context.abort = abort_of(me);
  context.abort_on_pe0 = abort_of(0);
  context.abort_stride = segment().stride();
  context.world_pes = num_pes_;
  context.world_pe = me;
  context.report = pe(me).report.get();
  context.checks_calls = checks_calls_;
  context.timeout_ns = static_cast<std::uint64_t>(timeout_s_ * 1e9);
  context.arrival_timeout_ns = static_cast<std::uint64_t>(arrival_timeout_s_ * 1e9);
  return context;
}

void Pes::set_abort(int number) const {
  // A copy: a kernel would have to find room beside those that wait.
  static const std::uint32_t by_host = kAbortedByHost;
  try {
    const DeviceGuard current(pe(number).device);
    cudaMemcpyAsync(abort_of(number), &by_host, sizeof(by_host), cudaMemcpyHostToDevice, pe(number).stream.get());
  } catch (const RuntimeFailure&) {
    // On a GPU that is lost nobody waits.
  }
}

void Pes::load_kernels(const Pe& pe) {
  check(cudaSetDevice(pe.device), "cudaSetDevice");
  load_signal_kernels();
  for (const detail::DeviceKernel* kernel : registered_kernels()) blocks_per_sm_[kernel] = kernel->load();
}

void Pes::check_launch(const detail::KernelLaunch& kernel) const {
  if (kernel.device == nullptr)
    throw Unsupported(fmt::format(
        "launch of {}: this kernel was not compiled for GPUs (tandem/advanced/cuda_kernel.cuh: register_kernel)",
        kernel.name));
  if (kernel.grid.blocks < 1)
    throw InvalidArgument(
        fmt::format("launch of {}: {} blocks given, at least 1 is needed", kernel.name, kernel.grid.blocks));
  if (kernel.grid.threads != kernel.device->threads)
    throw InvalidArgument(fmt::format("launch of {}: {} threads a block given, it is compiled for {}", kernel.name,
                                      kernel.grid.threads, kernel.device->threads));
  const auto found = blocks_per_sm_.find(kernel.device);
  const int per_sm = found != blocks_per_sm_.end() ? found->second : kernel.device->load();
  const int most = per_sm * gpu_sms_ / sharing_;
  if (kernel.grid.blocks > most)
    throw Unsupported(fmt::format("launch of {}: {} blocks given, the GPU (of {} PEs) holds {} of a PE at once",
                                  kernel.name, kernel.grid.blocks, sharing_, most));
}

/// Signals start as zeros, data as NaN.
void Pes::clear(const Pe& pe, Size part, Size offset, Size bytes, MemoryKind kind) const {
  std::byte* const memory = segment().base() + part * segment().stride() + offset;
  const int value = kind == MemoryKind::kControl ? 0 : 0xFF;
  check(cudaMemsetAsync(memory, value, static_cast<std::size_t>(bytes), pe.stream.get()), "cudaMemset");
  check(cudaStreamSynchronize(pe.stream.get()), "cudaMemset");
}

bootstrap::Failure report_of(const Pes& pes, int pe) {
  using bootstrap::FailureKind;
  const volatile WaitReport& report = *pes.pe(pe).report;
  const auto expected = static_cast<Epoch>(report.expected);
  const auto found = static_cast<Epoch>(report.found);
  const int block = report.block;
  const std::string word = pes.describe(const_cast<const void*>(report.word));
  if (report.set == kWaitedInVain) {
    const int other = report.without_wait;
    return {FailureKind::kTimeout,
            fmt::format("block {} gave up waiting for {} >= {}, found {}; {}", block, word, expected, found,
                        other < 0 ? "all PEs were waiting"
                                  : fmt::format("PE {} was not waiting: it had not come, or computed", other))};
  }
  if (report.set == kCallsOfOtherCounts)
    return {FailureKind::kInvalidArgument,
            fmt::format("calls with count {}, PE {} of the team with count {} ({})", expected, block, found, word)};
  return {FailureKind::kInvalidArgument,
          fmt::format("makes another call than PE {} of the team: operation, type, root or algorithm differ ({})",
                      block, word)};
}

bootstrap::Failure gave_up(const Pes& pes, int pe) {
  bootstrap::Failure failure = report_of(pes, pe);
  const volatile WaitReport& report = *pes.pe(pe).report;
  if (const CallLog* const calls = pes.calls(pe); calls != nullptr && report.set == kWaitedInVain)
    failure.text += calls->apart();
  return failure;
}

std::string ended_wait_of(const Pes& pes, int pe) {
  const volatile WaitReport::Ended& ended = pes.pe(pe).report->ended;
  if (ended.is_set == 0) return "";
  const int block = ended.block;
  const auto expected = static_cast<Epoch>(ended.expected);
  const auto found = static_cast<Epoch>(ended.found);
  return fmt::format("PE {}: block {} was waiting for {} >= {}, found {}", pe, block,
                     pes.describe(const_cast<const void*>(ended.word)), expected, found);
}

void copy_and_wait(const Pe& pe, void* to, const void* from, Size bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, pe.stream.get()), "copy");
  check(cudaStreamSynchronize(pe.stream.get()), "copy");
}

void* WorldView::allocate_symmetric(Size bytes, const std::string& name, Size element_bytes, bool control) {
  const DeviceGuard current(pes_.pe(pe_).device);
  return pes_.segment().base() + pes_.allocate(pe_, true, kind_of(control), bytes, name, element_bytes);
}

void* WorldView::allocate_local(Size bytes, const std::string& name, Size element_bytes, bool control) {
  const DeviceGuard current(pes_.pe(pe_).device);
  const Size offset = pes_.allocate(pe_, false, kind_of(control), bytes, name, element_bytes);
  return pes_.segment().base() + pe_ * stride() + offset;
}

/// In this PE's part; -1 elsewhere, where no buffer begins.
Size WorldView::offset_of(const void* memory) const {
  const Size offset = static_cast<const std::byte*>(memory) - pes_.segment().base() - pe_ * stride();
  return offset >= 0 && offset < stride() ? offset : -1;
}

std::optional<Size> WorldView::bytes_from(const void* memory) const {
  const Size offset = offset_of(memory);
  if (offset < 0) return std::nullopt;
  return pes_.bytes_from(pe_, offset).value_or(0);
}

std::shared_ptr<detail::StreamBackend> WorldView::make_stream(const std::string& name) {
  return std::make_shared<CudaStream>(pes_, pe_, name);
}

void WorldView::check_gemm(const Gemm& gemm) const {
  const DeviceGuard current(pes_.pe(pe_).device);
  check_hooked_gemm(gemm);
}

double WorldView::time_us() const {
  if (pes_.recording() != nullptr) return pes_.recording()->time_us();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

}  // namespace tandem::cuda
