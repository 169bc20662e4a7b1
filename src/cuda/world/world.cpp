#include "cuda/world/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "bootstrap/local/environment.h"
#include "cuda/device/register.h"
#include "cuda/driver/error.h"
#include "cuda/profile/recorded_kernels.h"
#include "cuda/world/world_recording.h"
#include "tandem/error.h"
#include "tandem/impl/cuda/standstill.h"

namespace tandem {

namespace {

/// Whether a launcher started this process as one of several, each of which has a GPU to itself.
bool is_one_of_several() {
  const auto is_set = [](const char* place, const char* processes) {
    const auto count = bootstrap::variable_of_process(processes);
    return bootstrap::variable_of_process(place) && count && *count != "1";
  };
  return is_set("RANK", "WORLD_SIZE") || is_set("SLURM_PROCID", "SLURM_NTASKS");
}

}  // namespace

int cuda_devices() {
  // Streams beyond the number of hardware queues wait for each other, which kernels of PEs that share a GPU and wait
  // for each other do not survive. Each queue makes copy engines slower, so who shares nothing keeps the driver's 8.
  // Read when the driver starts; a user's own choice stays.
  if (!is_one_of_several()) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  // The library's own kernels are loaded when a world is made. Others', cuBLASLt's above all, are loaded at their first
  // call: eagerly, that waits for every kernel of this process on any GPU, which may wait for that call; lazily, for
  // those on this GPU alone (bench/NOTES.md).
  setenv("CUDA_MODULE_LOADING", "LAZY", 0);
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

/// GPUs are given out in turns, so none has more PEs than the first.
int most_on_a_gpu(int pes) { return static_cast<int>(ceil_div(pes, std::max(1, cuda_devices()))); }

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
    : Pes(pes, first_device(pes), most_on_a_gpu(pes), options),
      pes_(make_pes(pes)),
      book_(pes, options.heap_bytes, options.heap_limit_bytes),
      segment_(devices_of(pes_), {book_.range_bytes(), book_.most_bytes()}),
      records_(pes) {
  std::vector<ClockPe> clocks;
  for (int i = 0; i < pes; ++i) {
    if (i < cuda_devices()) load_kernels(pe(i));
    const Size words = wait_words_bytes(pes);
    book_.allocate_symmetric(i, MemoryKind::kControl, words, kWaitWordsName, words);
    check(cudaSetDevice(pe(i).device), "cudaSetDevice");
    clear(pe(i), i, kWaitWordsOffset, words, MemoryKind::kControl);
    if (options.record.on) clocks.push_back(clock_of(i));
    if (options.compare_calls)
      calls_.push_back(std::make_unique<CallLog>(
          i, [this](int pe, std::size_t plan) { return records_.of(pe, plan); },
          [this, i](const std::string& text) {
            fail({bootstrap::FailureKind::kInvalidArgument, fmt::format("PE {}: {}", i, text)});
          }));
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
  const MemoryKind place = place_of(kind, bytes);
  // Whether the heap grows must not depend on who is first.
  if (symmetric && book_.can_grow()) barrier();
  {
    // What fits now must not find less room a moment later.
    std::unique_lock lock(mutex_);
    if (symmetric && book_.has_to_meet(number, place, bytes)) {
      lock.unlock();
      barrier();
      lock.lock();
      book_.reclaim();
    }
    if (const Size more = symmetric && place == MemoryKind::kData ? book_.growth_for(number, bytes) : 0) {
      segment_.grow(devices_of(pes_), more);
      book_.grow(more);
    }
    offset = symmetric ? book_.allocate_symmetric(number, place, bytes, name, element_bytes)
                       : book_.allocate_local(number, place, bytes, name, element_bytes);
  }
  clear(pe(number), number, offset, bytes, kind);
  if (symmetric) barrier();  // a peer's first write must not meet the clearing
  return offset;
}

void Threads::release(int number, Size offset) {
  const std::lock_guard lock(mutex_);
  book_.release_symmetric(number, offset);
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

std::optional<Size> Threads::bytes_from(int number, Size offset) const {
  const std::lock_guard lock(mutex_);
  return book_.bytes_from(number, offset);
}

void Threads::barrier() {
  std::unique_lock lock(mutex_);
  const std::uint64_t round = round_;
  if (++waiting_ == num_pes()) {
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round || failure_; });
  if (round_ == round) failure_->raise();
}

void Threads::fail(const bootstrap::Failure& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) {
    failure_ = why;
    log_line(LogLevel::kWarn, [&] { return "the world is over: " + why.text; });
  }
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
  if (by && !failure_)
    return bootstrap::Failure{bootstrap::FailureKind::kTimeout, "a PE gave up a wait, and did not say which"};
  return failure_;
}

void Threads::drain() const {
  for (const Pe& pe : pes_) {
    cudaSetDevice(pe.device);
    cudaDeviceSynchronize();
  }
}

/// A time-out with what the other PEs were waiting for: all kernels have ended.
[[noreturn]] void rethrow_with_waits(const Threads& threads, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Timeout& timeout) {
    std::string text = timeout.what();
    for (int pe = 0; pe < threads.num_pes(); ++pe)
      if (const std::string wait = ended_wait_of(threads, pe); text.find(wait) == std::string::npos)
        text += "; " + wait;
    throw Timeout(text);
  }
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
  cuda::register_library_kernels();
  if (options.record.on) cuda::register_profiled_library_kernels();
  state_ = std::make_unique<State>(pes, options);
  log_line(LogLevel::kInfo, [&] { return fmt::format("world of {} PEs, threads of this process", pes); });
}

CudaThreads::~CudaThreads() = default;

void CudaThreads::run(const std::function<void(World&)>& program) {
  if (state_->recording() != nullptr) state_->recording()->align();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(state_->num_pes()));
  std::mutex mutex;
  std::exception_ptr error;
  const auto end_with = [&](const std::exception_ptr& why, const std::string& text) {
    const std::lock_guard lock(mutex);
    if (!error) error = why;
    state_->fail({bootstrap::FailureKind::kRuntimeFailure, text});
  };
  const auto run_one = [&](int pe) {
    try {
      cuda::run_pe(*state_, pe, program);
    } catch (...) {
      end_with(std::current_exception(), "the host program of another PE has failed");
    }
  };
  for (int pe = 0; pe < state_->num_pes(); ++pe) {
    try {
      threads.emplace_back(run_one, pe);
    } catch (const std::system_error& refused) {  // those that have begun wait for it
      const std::string text = fmt::format("the thread of PE {} could not be started: {}", pe, refused.what());
      end_with(std::make_exception_ptr(RuntimeFailure(text)), text);
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  state_->drain();
  if (error) cuda::rethrow_with_waits(*state_, error);
  if (state_->recording() != nullptr) state_->recording()->align();
}

void CudaThreads::record(int pe, bool on) {
  if (pe < 0 || pe >= state_->num_pes())
    throw InvalidArgument(fmt::format("pe: {} given, allowed are 0 to {}", pe, state_->num_pes() - 1));
  recording_of(*state_).turn(pe, on);
}

const trace::Timeline& CudaThreads::timeline() { return recording_of(*state_).timeline(); }
const RecordingInfo& CudaThreads::recording_info() { return recording_of(*state_).info(); }

}  // namespace tandem
