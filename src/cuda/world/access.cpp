#include "cuda/world/access.h"

#include <cstring>
#include <new>

#include "cuda/driver/device_guard.h"
#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

/// Messages whose data may be on its way to the GPU together.
constexpr Size kTogether = 16;

template <class T>
T* pinned(Size bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "cudaMallocHost");
  T* const object = new (memory) T;
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
  return object;
}

}  // namespace

GpuAccess::GpuAccess(int device, const wire::Place& place, Size most)
    : device_(device),
      room_(kTogether * round_up(most, 64)),
      pinned_([device] {
        const DeviceGuard current(device);
        return pinned<Pinned>(sizeof(Pinned));
      }()),
      letters_(pinned_->slots, &pinned_->progress) {
  mail_ = {place.base, place.stride, place.node_size, place.me, pinned_->slots, &pinned_->progress, nullptr};
  try {
    allocate(most);
  } catch (...) {
    release();
    throw;
  }
}

void GpuAccess::allocate(Size most) {
  const DeviceGuard current(device_);
  read_to_ = pinned<std::byte>(most);
  outgoing_ = pinned<std::byte>(room_);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaMalloc(&mail_.posted, 2 * sizeof(std::uint64_t)), "cudaMalloc");
  check(cudaMemsetAsync(mail_.posted, 0, 2 * sizeof(std::uint64_t), stream_), "cudaMemset");
  // The driver sets up the first copy of a stream; later ones find everything there.
  read(reinterpret_cast<const std::byte*>(mail_.posted), sizeof(std::uint64_t));
}

void GpuAccess::release() noexcept {
  try {
    const DeviceGuard current(device_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    cudaFree(mail_.posted);
    cudaFreeHost(outgoing_);
    cudaFreeHost(read_to_);
    cudaFreeHost(pinned_);
  } catch (const RuntimeFailure&) {
    // A GPU that is lost has nothing left to be freed.
  }
}

GpuAccess::~GpuAccess() { release(); }

/// The thread's calls are allowed while another thread captures a stream.
void GpuAccess::start() {
  check(cudaSetDevice(device_), "cudaSetDevice");
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

View GpuAccess::read(const std::byte* from, Size bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  check(cudaMemcpyAsync(read_to_, from, size, cudaMemcpyDefault, stream_), "a copy for another node");
  finish();
  return {read_to_, size};
}

/// Copies of one stream are carried out in their order, so a word's change follows its data
/// (tests/gpu/hosts_gpu_check.cpp).
void GpuAccess::write(std::byte* to, View data) {
  const Size bytes = round_up(static_cast<Size>(data.size()), 64);
  if (used_ + bytes > room_) finish();
  std::byte* const staged = outgoing_ + used_;
  used_ += bytes;
  std::memcpy(staged, data.data(), data.size());
  check(cudaMemcpyAsync(to, staged, data.size(), cudaMemcpyDefault, stream_), "a copy of another node's data");
}

Epoch GpuAccess::value_of(const Signal& word) {
  Epoch value = 0;
  std::memcpy(&value, read(reinterpret_cast<const std::byte*>(&word.value), sizeof(value)).data(), sizeof(value));
  return value;
}

/// Nobody but this proxy adds to a word that other nodes add to (tandem/block.h), so an addition may read and write.
void GpuAccess::change(Signal& word, SignalOp op, Epoch value) {
  const Epoch changed = op == SignalOp::kSet ? value : value_of(word) + value;
  write(reinterpret_cast<std::byte*>(&word.value), std::as_bytes(std::span(&changed, 1)));
}

void GpuAccess::finish() {
  check(cudaStreamSynchronize(stream_), "copies between nodes");
  used_ = 0;
}

}  // namespace tandem::cuda
