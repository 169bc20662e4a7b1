#include "cuda/stream.h"

#include <fmt/format.h>

#include "cuda/error.h"
#include "cuda/gemm.h"
#include "cuda/signal_kernels.h"
#include "tandem/error.h"

namespace tandem::cuda {

CudaStream::CudaStream(Threads& threads, int pe, std::string name)
    : threads_(threads), pe_(pe), name_(std::move(name)) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  // A stream's first launch may have to wait for what runs on the GPU, and on a shared GPU that may wait for this
  // launch.
  launch_nothing(stream_);
  check(cudaStreamSynchronize(stream_), "cudaStreamCreate");
}

CudaStream::~CudaStream() { cudaStreamDestroy(stream_); }

Team CudaStream::world_team() const { return {0, 1, threads_.num_pes(), pe_, threads_.num_pes()}; }

void CudaStream::launch(detail::KernelLaunch kernel) {
  if (kernel.device == nullptr)
    throw Unsupported(
        fmt::format("launch of {}: this kernel was not compiled for GPUs (see cuda::register_kernel)", kernel.name));
  if (kernel.grid.blocks < 1)
    throw InvalidArgument(
        fmt::format("launch of {}: {} blocks given, at least 1 is needed", kernel.name, kernel.grid.blocks));
  if (kernel.grid.threads != kernel.device->threads)
    throw InvalidArgument(fmt::format("launch of {}: {} threads a block given, it is compiled for {}", kernel.name,
                                      kernel.grid.threads, kernel.device->threads));
  if (kernel.team.me < 0)
    throw InvalidArgument(fmt::format("launch of {}: PE {} is not a member of the team", kernel.name, pe_));
  check_resident(kernel);
  const Context context = threads_.context(kernel.team);
  kernel.device->launch({kernel.grid.blocks, &context, kernel.args, stream_, threads_.early_launch()});
}

void CudaStream::check_resident(const detail::KernelLaunch& kernel) const {
  const int most = threads_.most_blocks(*kernel.device, pe_);
  if (kernel.grid.blocks > most)
    throw Unsupported(fmt::format("launch of {}: {} blocks given, the GPU (of {} PEs) holds {} of a PE at once",
                                  kernel.name, kernel.grid.blocks, threads_.sharing(pe_), most));
}

void CudaStream::gemm(const Gemm& gemm, const Team& team) {
  if (plain_gemms_.run(gemm, stream_)) return;
  if (threads_.sharing(pe_) > 1)
    throw Unsupported(
        fmt::format("gemm: {} PEs share a GPU, its persistent kernel needs one of its own", threads_.sharing(pe_)));
  run_gemm(gemm, threads_.context(team), threads_.machine().gpu.sm_count, threads_.early_launch(), stream_);
}

void CudaStream::copy(void* to, const void* from, Size bytes) {
  if (bytes < 0) throw InvalidArgument(fmt::format("copy_async: {} bytes given, must not be negative", bytes));
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_), "copy_async");
}

void CudaStream::write_signal(Signal* word, const Epoch* from, Epoch value) {
  // To another GPU by its copy engine, after the copies before it: a kernel would not find a place beside a GEMM that
  // fills every SM.
  if (from != nullptr && threads_.segment().pe_of(word) != pe_ && threads_.sharing(pe_) == 1)
    return check(cudaMemcpyAsync(word, from, sizeof(Epoch), cudaMemcpyDeviceToDevice, stream_), "write_signal");
  launch_write(stream_, word, from, value);
}

void CudaStream::wait_signal(const Signal* word, Epoch value) {
  launch_wait(stream_, threads_.context(world_team()), word, value);
}

std::shared_ptr<detail::EventState> CudaStream::record() {
  auto state = std::make_shared<detail::EventState>();
  check(cudaEventCreateWithFlags(&state->event, cudaEventDisableTiming), "cudaEventCreate");
  check(cudaEventRecord(state->event, stream_), "cudaEventRecord");
  return state;
}

void CudaStream::wait(const std::shared_ptr<detail::EventState>& event) {
  if (event == nullptr) throw InvalidArgument("wait: the event was never recorded");
  check(cudaStreamWaitEvent(stream_, event->event), "cudaStreamWaitEvent");
}

void CudaStream::synchronize() {
  check(cudaStreamSynchronize(stream_), "synchronize");
  const volatile WaitReport& report = *threads_.pe(pe_).report;
  if (report.set == 0) {
    if (threads_.failed()) throw RuntimeFailure("synchronize: the host program of another PE has failed");
    return;
  }
  throw Timeout(fmt::format("PE {} block {} gave up waiting for {} >= {}, found {}", pe_,
                            static_cast<int>(report.block), threads_.describe(const_cast<const void*>(report.word)),
                            static_cast<Epoch>(report.expected), static_cast<Epoch>(report.found)));
}

}  // namespace tandem::cuda
