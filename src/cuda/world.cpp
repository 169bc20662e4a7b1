#include "cuda/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <thread>

#include "cuda/error.h"
#include "cuda/recorded_kernels.h"
#include "cuda/register.h"
#include "cuda/world_recording.h"
#include "tandem/error.h"

namespace tandem {

int cuda_devices() {
  // Streams beyond the number of hardware queues wait for each other, which kernels that wait for each other do not
  // survive. Read when the driver starts; a user's own choice stays.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  // Likewise what a kernel's first launch loads: loading waits for the GPU, on which a kernel may wait for that launch.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

namespace cuda {

namespace {

/// That of PE 0. Throws where there are no PEs or GPUs.
int first_device(int pes) {
  if (pes < 1)
    throw InvalidArgument(
        fmt::format("pes: {} given, at least 1 is needed; cuda_devices() gives {}", pes, cuda_devices()));
  if (cuda_devices() == 0) throw Unsupported("cuda backend: no GPU, or no NVIDIA driver");
  return 0;
}

std::vector<Pe> make_pes(int count) {
  std::vector<Pe> pes;
  pes.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) pes.push_back(make_pe(i % cuda_devices()));
  return pes;
}

std::vector<int> devices_of(const std::vector<Pe>& pes) {
  std::vector<int> devices;
  devices.reserve(pes.size());
  for (const Pe& pe : pes) devices.push_back(pe.device);
  return devices;
}

}  // namespace

Threads::Threads(int pes, const CudaOptions& options)
    : Pes(pes, first_device(pes), options),
      pes_(make_pes(pes)),
      book_(pes, options.heap_bytes, options.heap_limit_bytes),
      segment_(devices_of(pes_), {book_.range_bytes(), book_.most_bytes()}),
      records_(pes) {
  early_launch_ = early_launch_ && pes <= cuda_devices();
  std::vector<ClockPe> clocks;
  for (int i = 0; i < pes; ++i) {
    if (i < cuda_devices()) load_kernels(pe(i));
    book_.allocate_symmetric(i, MemoryKind::kControl, sizeof(std::uint32_t), kAbortName, sizeof(std::uint32_t));
    check(cudaSetDevice(pe(i).device), "cudaSetDevice");
    clear(pe(i), i, kAbortOffset, sizeof(std::uint32_t), MemoryKind::kControl);
    if (options.record.on) clocks.push_back(clock_of(i));
    if (options.compare_calls)
      calls_.push_back(
          std::make_unique<CallLog>(i, [this](int pe, std::size_t plan) { return records_.of(pe, plan); }));
  }
  if (options.record.on) recording_ = make_recording(*this, std::move(clocks), options);
}

ClockPe Threads::clock_of(int number) {
  const Size mail = book_.allocate_symmetric(number, MemoryKind::kControl, sizeof(Mail), "clock mail", sizeof(Mail));
  clear(pe(number), number, mail, sizeof(Mail), MemoryKind::kControl);
  std::byte* const own = segment_.base() + number * segment_.stride() + mail;
  return {pe(number).device, pe(number).stream.get(), reinterpret_cast<Mail*>(own)};
}

Threads::~Threads() {
  drain();
  for (Pe& pe : pes_) {
    cudaSetDevice(pe.device);  // a stream is destroyed on its own GPU
    pe.stream.reset();
  }
}

Size Threads::allocate(int number, bool symmetric, MemoryKind kind, Size bytes, const std::string& name,
                       Size element_bytes) {
  Size offset = 0;
  // Whether the heap grows must not depend on who is first.
  if (symmetric && book_.can_grow()) barrier();
  {
    const std::lock_guard lock(mutex_);
    const MemoryKind place = place_of(kind, bytes);
    if (const Size more = symmetric && place == MemoryKind::kData ? book_.growth_for(number, bytes) : 0) {
      segment_.grow(devices_of(pes_), more);
      book_.grow(more);
    }
    offset = symmetric ? book_.allocate_symmetric(number, place, bytes, name, element_bytes)
                       : book_.allocate_local(number, place, bytes, name, element_bytes);
  }
  clear(pe(number), number, offset, bytes, kind);
  if (symmetric && kind == MemoryKind::kControl) barrier();
  return offset;
}

void Threads::free(int number, bool symmetric, Size offset) {
  if (symmetric) barrier();
  const std::lock_guard lock(mutex_);
  symmetric ? book_.free_symmetric(number, offset) : book_.free_local(number, offset);
}

std::string Threads::describe(const void* address) const {
  const std::lock_guard lock(mutex_);
  const int pe = segment_.pe_of(address);
  return book_.describe(pe, static_cast<const std::byte*>(address) - segment_.base() - pe * segment_.stride());
}

void Threads::barrier() {
  std::unique_lock lock(mutex_);
  const std::uint64_t round = round_;
  if (++waiting_ == num_pes()) {
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round || failed_; });
  if (round_ == round) throw RuntimeFailure("barrier: the host program of another PE has failed");
}

void Threads::fail() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  changed_.notify_all();
  for (int i = 0; i < num_pes(); ++i) set_abort(i);
}

std::optional<bootstrap::Failure> Threads::end(int, std::optional<std::uint32_t> by) const {
  // Not `by` alone: who finds calls that differ writes its own number over that of whoever said so first.
  for (int other = 0; by && other < num_pes(); ++other) {
    if (const volatile WaitReport& report = *pe(other).report; report.set == 0) continue;
    bootstrap::Failure failure = report_of(*this, other);
    failure.text = fmt::format("PE {}: {}", other, failure.text);
    return failure;
  }
  const std::lock_guard lock(mutex_);
  if (!by && !failed_) return std::nullopt;
  return bootstrap::Failure{bootstrap::FailureKind::kRuntimeFailure,
                            "synchronize: the host program of another PE has failed"};
}

void Threads::drain() const {
  for (const Pe& pe : pes_) {
    cudaSetDevice(pe.device);
    cudaDeviceSynchronize();
  }
}

int Threads::sharing(int number) const {
  return static_cast<int>(
      std::count_if(pes_.begin(), pes_.end(), [&](const Pe& other) { return other.device == pe(number).device; }));
}

void run_pe(Threads& threads, int pe, const std::function<void(World&)>& program) {
  check(cudaSetDevice(threads.pe(pe).device), "cudaSetDevice");
  WorldView view(threads, pe);
  World world(view);
  program(world);
}

}  // namespace cuda

struct CudaThreads::State : cuda::Threads {
  using Threads::Threads;
};

CudaThreads::CudaThreads(int pes, const CudaOptions& options) {
  cuda::register_collectives();
  if (options.record.on) cuda::register_recorded_collectives();
  state_ = std::make_unique<State>(pes, options);
}

CudaThreads::~CudaThreads() = default;

void CudaThreads::run(const std::function<void(World&)>& program) {
  if (state_->recording() != nullptr) state_->recording()->align();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(state_->num_pes()));
  std::mutex mutex;
  std::exception_ptr error;
  for (int pe = 0; pe < state_->num_pes(); ++pe)
    threads.emplace_back([&, pe] {
      try {
        cuda::run_pe(*state_, pe, program);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        state_->fail();
      }
    });
  for (std::thread& thread : threads) thread.join();
  state_->drain();
  if (error) std::rethrow_exception(error);
  if (state_->recording() != nullptr) state_->recording()->align();
}

void CudaThreads::record(int pe, bool on) { recording_of(*state_).turn(pe, on); }
const trace::Timeline& CudaThreads::timeline() { return recording_of(*state_).timeline(); }
const RecordingInfo& CudaThreads::recording_info() { return recording_of(*state_).info(); }

}  // namespace tandem
