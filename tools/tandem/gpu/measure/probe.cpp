#include "tools/tandem/gpu/measure/probe.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "cuda/device/probe_kernels.h"
#include "cuda/driver/error.h"
#include "cuda/driver/graph.h"
#include "tandem/cuda.h"
#include "tandem/error.h"
#include "tools/tandem/gpu/measure/timed_calls.h"

namespace tandem::cli {

using cuda::check;

namespace {

constexpr int kRepeats = 3;
constexpr int kRounds = 2000;  // ping-pong exchanges
constexpr Size kWords = 64;

}  // namespace

/// Buffers and a stream of one GPU.
struct Probe::Gpu {
  explicit Gpu(int number) : device(number) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    for (void** const buffer : {&first, &second}) {
      check(cudaMalloc(buffer, static_cast<std::size_t>(kBytes)), "cudaMalloc");
      check(cudaMemset(*buffer, 0x5A, static_cast<std::size_t>(kBytes)), "cudaMemset");
    }
    void* memory = nullptr;
    check(cudaMalloc(&memory, kWords * sizeof(std::uint64_t)), "cudaMalloc");
    words = static_cast<std::uint64_t*>(memory);
    check(cudaMallocHost(&memory, kWords * sizeof(std::uint64_t)), "cudaMallocHost");
    ns = static_cast<std::uint64_t*>(memory);
    cuda::load_probe_kernels();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Gpu() {
    cudaSetDevice(device);
    cudaFree(first);
    cudaFree(second);
    cudaFree(words);
    cudaFreeHost(ns);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void clear_words() const {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaMemsetAsync(words, 0, kWords * sizeof(std::uint64_t), stream), "cudaMemset");
    check(cudaStreamSynchronize(stream), "cudaMemset");
  }

  int device;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  void* first = nullptr;
  void* second = nullptr;
  std::uint64_t* words = nullptr;
  std::uint64_t* ns = nullptr;  // host memory
};

Probe::Probe() {
  const int count = cuda_devices();
  if (count == 0) throw Unsupported("this machine has no GPU, or no NVIDIA driver");
  for (int i = 0; i < count; ++i) gpus_.push_back(std::make_unique<Gpu>(i));
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to) {
      if (from == to || !reaches(from, to)) continue;
      check(cudaSetDevice(from), "cudaSetDevice");
      const cudaError_t code = cudaDeviceEnablePeerAccess(to, 0);
      if (code != cudaErrorPeerAccessAlreadyEnabled) check(code, "cudaDeviceEnablePeerAccess");
      cudaGetLastError();  // a sticky error would fail the next launch's check
    }
}

Probe::~Probe() = default;

bool Probe::reaches(int from, int to) const {
  int can = 0;
  return from == to || (cudaDeviceCanAccessPeer(&can, from, to) == cudaSuccess && can != 0);
}

/// Returns the best of some runs after a warm-up run.
double Probe::seconds(int number, const std::function<void(cudaStream_t)>& work) const {
  const Gpu& gpu = *gpus_[static_cast<std::size_t>(number)];
  check(cudaSetDevice(gpu.device), "cudaSetDevice");
  double best = 0;
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    check(cudaEventRecord(gpu.begin, gpu.stream), "cudaEventRecord");
    work(gpu.stream);
    check(cudaEventRecord(gpu.end, gpu.stream), "cudaEventRecord");
    check(cudaStreamSynchronize(gpu.stream), "probe");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, gpu.begin, gpu.end), "cudaEventElapsedTime");
    if (repeat > 0) best = best == 0 ? ms * 1e-3 : std::min(best, ms * 1e-3);
  }
  return best;
}

/// Returns the slowest GPU's time. All start within the time of a few launches, so the work should take much longer.
double Probe::seconds_of_all(const std::function<void(int, cudaStream_t)>& work) const {
  double best = 0;
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    for (const auto& gpu : gpus_) {
      check(cudaSetDevice(gpu->device), "cudaSetDevice");
      check(cudaEventRecord(gpu->begin, gpu->stream), "cudaEventRecord");
      work(gpu->device, gpu->stream);
      check(cudaEventRecord(gpu->end, gpu->stream), "cudaEventRecord");
    }
    double slowest = 0;
    for (const auto& gpu : gpus_) {
      check(cudaStreamSynchronize(gpu->stream), "probe");
      float ms = 0;
      check(cudaEventElapsedTime(&ms, gpu->begin, gpu->end), "cudaEventElapsedTime");
      slowest = std::max(slowest, ms * 1e-3);
    }
    if (repeat > 0) best = best == 0 ? slowest : std::min(best, slowest);
  }
  return best;
}

double Probe::copy_gbps(int from, int to, Size bytes) const {
  const Gpu& source = *gpus_[static_cast<std::size_t>(from)];
  const Gpu& target = *gpus_[static_cast<std::size_t>(to)];
  const double s = seconds(from, [&](cudaStream_t stream) {
    check(cudaMemcpyAsync(target.second, source.first, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream),
          "cudaMemcpy");
  });
  return static_cast<double>(bytes) * 1e-9 / s;
}

double Probe::store_gbps(int from, int to, int blocks, Size bytes) const {
  void* const target = gpus_[static_cast<std::size_t>(to)]->second;
  return static_cast<double>(bytes) * 1e-9 /
         seconds(from, [&](cudaStream_t stream) { cuda::launch_stream(stream, blocks, target, nullptr, bytes); });
}

double Probe::load_gbps(int from, int to, int blocks, Size bytes) const {
  const void* const source = gpus_[static_cast<std::size_t>(to)]->first;
  return static_cast<double>(bytes) * 1e-9 /
         seconds(from, [&](cudaStream_t stream) { cuda::launch_stream(stream, blocks, nullptr, source, bytes); });
}

double Probe::store_all_to_all_gbps(int blocks, Size bytes) const {
  const Size part = bytes / std::max(gpus() - 1, 1) / 65536 * 65536;
  const double s = seconds_of_all([&](int from, cudaStream_t stream) {
    for (int step = 1; step < gpus(); ++step) {
      const int to = (from + step) % gpus();
      cuda::launch_stream(stream, blocks,
                          static_cast<std::byte*>(gpus_[static_cast<std::size_t>(to)]->second) + (step - 1) * part,
                          nullptr, part);
    }
  });
  return static_cast<double>(part * (gpus() - 1)) * 1e-9 / s;
}

double Probe::local_gbps(int gpu, int blocks, Size bytes) const {
  const Gpu& own = *gpus_[static_cast<std::size_t>(gpu)];
  return 2 * static_cast<double>(bytes) * 1e-9 /
         seconds(gpu, [&](cudaStream_t stream) { cuda::launch_stream(stream, blocks, own.second, own.first, bytes); });
}

double Probe::one_way_us(int from, int to, bool ordered) const {
  const Gpu& a = *gpus_[static_cast<std::size_t>(from)];
  const Gpu& b = *gpus_[static_cast<std::size_t>(to)];
  std::vector<double> all;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    a.clear_words();
    b.clear_words();
    check(cudaSetDevice(b.device), "cudaSetDevice");
    cuda::launch_ping_pong(b.stream, b.words, a.words, kRounds, false, ordered, b.ns);
    check(cudaSetDevice(a.device), "cudaSetDevice");
    cuda::launch_ping_pong(a.stream, a.words, b.words, kRounds, true, ordered, a.ns);
    check(cudaStreamSynchronize(a.stream), "ping-pong");
    check(cudaStreamSynchronize(b.stream), "ping-pong");
    all.push_back(static_cast<double>(*a.ns) * 1e-3 / kRounds / 2);
  }
  return median(all);
}

double Probe::local_one_way_us(int gpu) const {
  const Gpu& own = *gpus_[static_cast<std::size_t>(gpu)];
  std::vector<double> all;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    own.clear_words();
    cuda::launch_local_ping_pong(own.stream, own.words, kRounds, own.ns);
    check(cudaStreamSynchronize(own.stream), "ping-pong");
    all.push_back(static_cast<double>(*own.ns) * 1e-3 / kRounds / 2);
  }
  return median(all);
}

double Probe::load_us(int from, int to) const {
  const Gpu& own = *gpus_[static_cast<std::size_t>(from)];
  const Gpu& other = *gpus_[static_cast<std::size_t>(to)];
  // The step of 64 KiB and a bit makes all steps together exceed a GPU's caches.
  constexpr Size kStep = 8209, kChain = kBytes / 8;
  constexpr int kSteps = 2000;
  std::vector<std::uint64_t> chain(static_cast<std::size_t>(kChain));
  for (Size i = 0; i < kChain; ++i)
    chain[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>((i + kStep) % kChain);
  check(cudaMemcpy(other.first, chain.data(), static_cast<std::size_t>(kBytes), cudaMemcpyDefault), "cudaMemcpy");
  check(cudaSetDevice(own.device), "cudaSetDevice");
  std::vector<double> all;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    cuda::launch_chase(own.stream, static_cast<const std::uint64_t*>(other.first), kSteps, own.ns);
    check(cudaStreamSynchronize(own.stream), "pointer chase");
    all.push_back(static_cast<double>(*own.ns) * 1e-3 / kSteps);
  }
  return median(all);
}

double Probe::copy_startup_us(int from, int to) const {
  constexpr int kCopies = 200;
  const Gpu& source = *gpus_[static_cast<std::size_t>(from)];
  const Gpu& target = *gpus_[static_cast<std::size_t>(to)];
  check(cudaSetDevice(from), "cudaSetDevice");
  cuda::Graph graph(source.stream, [&] {
    for (int i = 0; i < kCopies; ++i)
      check(cudaMemcpyAsync(target.second, source.first, 8, cudaMemcpyDeviceToDevice, source.stream), "cudaMemcpy");
  });
  return seconds(from, [&](cudaStream_t) { graph.launch(); }) * 1e6 / kCopies;
}

double Probe::launch_us() const {
  constexpr int kLaunches = 1000;
  return seconds(0,
                 [&](cudaStream_t stream) {
                   for (int i = 0; i < kLaunches; ++i) cuda::launch_empty(stream, false);
                 }) *
         1e6 / kLaunches;
}

double Probe::graph_node_us(bool early) const {
  constexpr int kLaunches = 1000;
  check(cudaSetDevice(0), "cudaSetDevice");
  cudaStream_t stream = gpus_.front()->stream;
  cuda::Graph graph(stream, [&] {
    for (int i = 0; i < kLaunches; ++i) cuda::launch_empty(stream, early);
  });
  return seconds(0, [&](cudaStream_t) { graph.launch(); }) * 1e6 / kLaunches;
}

}  // namespace tandem::cli
