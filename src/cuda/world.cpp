#include "cuda/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "cuda/error.h"
#include "cuda/register.h"
#include "cuda/signal_kernels.h"
#include "cuda/stream.h"
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

std::vector<Pe> make_pes(int count) {
  if (count < 1) throw InvalidArgument(fmt::format("pes: {} given, at least 1 is needed", count));
  const int devices = cuda_devices();
  if (devices == 0) throw Unsupported("cuda backend: no GPU, or no NVIDIA driver");
  std::vector<Pe> pes(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Pe& pe = pes[static_cast<std::size_t>(i)];
    pe.device = i % devices;
    check(cudaSetDevice(pe.device), "cudaSetDevice");
    check(cudaFree(nullptr), "starting the GPU");
    void* memory = nullptr;
    check(cudaMalloc(&memory, sizeof(std::uint32_t)), "cudaMalloc");
    pe.abort.reset(static_cast<std::uint32_t*>(memory));
    check(cudaMemset(memory, 0, sizeof(std::uint32_t)), "cudaMemset");
    check(cudaMallocHost(&memory, sizeof(WaitReport)), "cudaMallocHost");
    pe.report.reset(new (memory) WaitReport{});
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    pe.stream.reset(stream);
  }
  return pes;
}

std::vector<int> devices_of(const std::vector<Pe>& pes) {
  std::vector<int> devices;
  for (const Pe& pe : pes) devices.push_back(pe.device);
  return devices;
}

/// What plans ask a machine for: the limits of its GPUs.
Machine describe_gpu(int pes) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  Machine machine;
  machine.name = properties.name;
  machine.pes_per_node = pes;
  machine.gpu.sm_count = properties.multiProcessorCount;
  machine.gpu.max_blocks_per_sm = properties.maxBlocksPerMultiProcessor;
  machine.gpu.max_threads_per_sm = properties.maxThreadsPerMultiProcessor;
  machine.gpu.copy_engines = properties.asyncEngineCount;
  return machine;
}

/// Loads all kernels on all of the GPUs; returns how many blocks of each fit one SM.
std::map<const detail::DeviceKernel*, int> load_kernels(const std::vector<Pe>& pes) {
  std::map<const detail::DeviceKernel*, int> blocks;
  for (std::size_t i = 0; i < pes.size() && static_cast<int>(i) < cuda_devices(); ++i) {
    check(cudaSetDevice(pes[i].device), "cudaSetDevice");
    load_signal_kernels();
    for (const detail::DeviceKernel* kernel : registered_kernels()) blocks[kernel] = kernel->load();
  }
  return blocks;
}

class ThreadWorld : public detail::WorldBackend {
 public:
  ThreadWorld(Threads& threads, int pe) : threads_(threads), pe_(pe) {}

  Team team() const override { return {0, 1, threads_.num_pes(), pe_, threads_.num_pes()}; }
  const Machine& machine() const override { return threads_.machine(); }
  bool phantom() const override { return false; }
  Size stride() const override { return threads_.segment().stride(); }
  void* allocate_symmetric(Size bytes, const std::string& name, Size element_bytes, bool control) override {
    const Size offset = threads_.allocate(pe_, true, kind(control), bytes, name, element_bytes);
    clear(offset, bytes, control);
    return threads_.segment().base() + offset;
  }
  void* allocate_local(Size bytes, const std::string& name, Size element_bytes, bool control) override {
    const Size offset = threads_.allocate(pe_, false, kind(control), bytes, name, element_bytes);
    clear(offset, bytes, control);
    return own(offset);
  }
  void copy_in(void* to, const void* from, Size bytes) override { copy_and_wait(threads_.pe(pe_), to, from, bytes); }
  void copy_out(void* to, const void* from, Size bytes) override { copy_and_wait(threads_.pe(pe_), to, from, bytes); }
  std::shared_ptr<detail::StreamBackend> make_stream(const std::string& name) override {
    return std::make_shared<CudaStream>(threads_, pe_, name);
  }
  void barrier() override { threads_.barrier(); }
  double time_us() const override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
  }

 private:
  /// The control part is for simulations without contents; here all memory has contents, and packets take more of it.
  static MemoryKind kind(bool /*control*/) { return MemoryKind::kData; }
  std::byte* own(Size offset) const { return threads_.segment().base() + pe_ * stride() + offset; }
  /// Signals start as zeros, on every PE before any PE goes on; data as NaN.
  void clear(Size offset, Size bytes, bool control) const {
    const cudaStream_t stream = threads_.pe(pe_).stream.get();
    check(cudaMemsetAsync(own(offset), control ? 0 : 0xFF, static_cast<std::size_t>(bytes), stream), "cudaMemset");
    check(cudaStreamSynchronize(stream), "cudaMemset");
    if (control) threads_.barrier();
  }

  Threads& threads_;
  int pe_;
};

}  // namespace

Threads::Threads(int pes, const CudaOptions& options)
    : pes_(make_pes(pes)),
      segment_(devices_of(pes_), HeapBook(pes, options.heap_bytes).range_bytes()),
      machine_(describe_gpu(pes)),
      timeout_s_(options.timeout_s),
      early_launch_(options.early_launch && pes <= cuda_devices()),
      blocks_per_sm_(load_kernels(pes_)),
      book_(pes, options.heap_bytes) {}

Size Threads::allocate(int pe, bool symmetric, MemoryKind kind, Size bytes, const std::string& name,
                       Size element_bytes) {
  const std::lock_guard lock(mutex_);
  return symmetric ? book_.allocate_symmetric(pe, kind, bytes, name, element_bytes)
                   : book_.allocate_local(pe, kind, bytes, name, element_bytes);
}

std::string Threads::describe(const void* address) const {
  const std::lock_guard lock(mutex_);
  const int pe = segment_.pe_of(address);
  return book_.describe(pe, static_cast<const std::byte*>(address) - segment_.base() - pe * segment_.stride());
}

Context Threads::context(const Team& team) const {
  const Pe& own = pe(team.world_pe(team.me));
  Context context;
  context.team = team;
  context.abort = own.abort.get();
  context.report = own.report.get();
  context.timeout_ns = static_cast<std::uint64_t>(timeout_s_ * 1e9);
  return context;
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
  for (const Pe& pe : pes_) {
    cudaSetDevice(pe.device);
    cudaMemsetAsync(pe.abort.get(), 1, sizeof(std::uint32_t), pe.stream.get());
  }
}

bool Threads::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void Threads::drain() const {
  for (const Pe& pe : pes_) {
    cudaSetDevice(pe.device);
    cudaDeviceSynchronize();
  }
}

Threads::~Threads() { drain(); }

int Threads::most_blocks(const detail::DeviceKernel& kernel, int number) const {
  const auto found = blocks_per_sm_.find(&kernel);
  const int per_sm = found != blocks_per_sm_.end() ? found->second : kernel.load();
  return per_sm * machine_.gpu.sm_count / sharing(number);
}

int Threads::sharing(int number) const {
  return static_cast<int>(
      std::count_if(pes_.begin(), pes_.end(), [&](const Pe& other) { return other.device == pe(number).device; }));
}

void copy_and_wait(const Pe& pe, void* to, const void* from, Size bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, pe.stream.get()), "copy");
  check(cudaStreamSynchronize(pe.stream.get()), "copy");
}

void run_pe(Threads& threads, int pe, const std::function<void(World&)>& program) {
  check(cudaSetDevice(threads.pe(pe).device), "cudaSetDevice");
  ThreadWorld backend(threads, pe);
  World world(backend);
  program(world);
}

}  // namespace cuda

struct CudaThreads::State : cuda::Threads {
  using Threads::Threads;
};

CudaThreads::CudaThreads(int pes, const CudaOptions& options) {
  cuda::register_collectives();
  state_ = std::make_unique<State>(pes, options);
}

CudaThreads::~CudaThreads() = default;

void CudaThreads::run(const std::function<void(World&)>& program) {
  std::vector<std::thread> threads;
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
}

}  // namespace tandem
