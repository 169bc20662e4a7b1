#include "cuda/world/access.h"

#include <cstring>
#include <new>
#include <utility>

#include "cuda/driver/device_guard.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

template <class T>
T* pinned_memory(Size bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "cudaMallocHost");
  T* const object = new (memory) T;
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
  return object;
}

}  // namespace

GpuAccess::GpuAccess(int device, const wire::Place& place, wire::Room room)
    : device_(device),
      room_(std::move(room)),
      most_(round_up(room_.most_bytes, 64)),
      pinned_([device] {
        const DeviceGuard current(device);
        return pinned_memory<Pinned>(sizeof(Pinned));
      }()),
      requests_(&pinned_->ring, &pinned_->progress) {
  mail_ = {place.base, place.stride, place.node_size, place.me, &pinned_->ring, &pinned_->progress, nullptr};
  try {
    allocate();
  } catch (...) {
    free_all();
    throw;
  }
}

void GpuAccess::allocate() {
  const DeviceGuard current(device_);
  read_to_ = pinned_memory<std::byte>(kReadings * most_);
  for (int i = kReadings - 1; i >= 0; --i) free_.push_back(read_to_ + i * most_);
  write_from_ = pinned_memory<std::byte>(kSections * kMessagesOfSection * most_);
  // Without it, as where little memory may be locked, all data is staged.
  if (room_.memory != nullptr)
    is_registered_ = cudaHostRegister(room_.memory.get(), room_.memory_bytes, cudaHostRegisterDefault) == cudaSuccess;
  if (room_.memory != nullptr && !is_registered_) cudaGetLastError();
  for (cudaStream_t* const stream : {&reading_, &writing_})
    check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaMalloc(&mail_.posted, 2 * sizeof(std::uint64_t)), "cudaMalloc");
  check(cudaMemsetAsync(mail_.posted, 0, 2 * sizeof(std::uint64_t), writing_), "cudaMemset");
  finish();
  // The driver sets up the first copy of a stream; later ones find everything there.
  const auto* const from = reinterpret_cast<const std::byte*>(mail_.posted);
  release(read(from, sizeof(std::uint64_t)));
  write(reinterpret_cast<std::byte*>(mail_.posted), View(reinterpret_cast<std::byte*>(&pinned_->value), sizeof(Epoch)));
  mark_writes();
  check(cudaStreamSynchronize(reading_), "cudaStreamSynchronize");
  finish();
}

void GpuAccess::free_all() noexcept {
  try {
    const DeviceGuard current(device_);
    if (is_registered_) {
      cudaStreamSynchronize(writing_);  // copies may still read messages
      cudaHostUnregister(room_.memory.get());
    }
    for (const cudaStream_t stream : {reading_, writing_})
      if (stream != nullptr) cudaStreamDestroy(stream);
    cudaFree(mail_.posted);
    cudaFreeHost(write_from_);
    cudaFreeHost(read_to_);
    cudaFreeHost(pinned_);
  } catch (const RuntimeFailure&) {
    // A GPU that is lost has nothing left to be freed.
  }
}

GpuAccess::~GpuAccess() { free_all(); }

/// The thread's calls are allowed while another thread captures a stream.
void GpuAccess::start() {
  check(cudaSetDevice(device_), "cudaSetDevice");
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

/// Stores a value to a word behind all earlier work of the stream, whose writes are visible then.
void GpuAccess::store_behind(cudaStream_t stream, const std::uint64_t* word, std::uint64_t value) {
  check(driver().stream_write_value(stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WRITE_VALUE_DEFAULT),
        "cuStreamWriteValue64");
}

wire::Reading GpuAccess::read(const std::byte* from, Size bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  std::byte* const to = free_.back();
  free_.pop_back();
  check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, reading_), "a copy for another node");
  store_behind(reading_, &pinned_->read, ++reads_);
  return {{to, size}, reads_, true};
}

bool GpuAccess::is_read(const wire::Reading& reading) {
  return std::atomic_ref(pinned_->read).load(std::memory_order_acquire) >= reading.number;
}

/// The part is used by a later copy of the same stream, so that its own need not be complete.
void GpuAccess::release(const wire::Reading& reading) { free_.push_back(read_to_ + (reading.data.data() - read_to_)); }

const std::byte* GpuAccess::stage(View data) {
  const auto bytes = static_cast<Size>(data.size());
  if (used_ + bytes > kMessagesOfSection * most_) {
    marks_of_sections_[section_] = mark_writes();
    section_ = (section_ + 1) % kSections;
    used_ = 0;
    if (!are_written(marks_of_sections_[section_])) finish();
  }
  std::byte* const staged = write_from_ + static_cast<Size>(section_) * kMessagesOfSection * most_ + used_;
  used_ += round_up(bytes, 64);
  std::memcpy(staged, data.data(), data.size());
  return staged;
}

bool GpuAccess::has_arrived_here(View data) const {
  const auto from_first =
      reinterpret_cast<std::uintptr_t>(data.data()) - reinterpret_cast<std::uintptr_t>(room_.memory.get());
  return is_registered_ && from_first < room_.memory_bytes;
}

/// Copies of one stream are carried out in their order, so a word's change follows its data
/// (tests/gpu/processes/hosts_gpu_check.cpp). Short data is staged, so that its message is free at once.
bool GpuAccess::write(std::byte* to, View data) {
  constexpr std::size_t least_unstaged = 8192;
  const bool stays = data.size() >= least_unstaged && has_arrived_here(data);
  const std::byte* const from = stays ? data.data() : stage(data);
  check(cudaMemcpyAsync(to, from, data.size(), cudaMemcpyDefault, writing_), "a copy of another node's data");
  is_marked_ = false;
  return stays;
}

/// The read follows the writes so far.
Epoch GpuAccess::value_of(const Signal& word) {
  check(cudaMemcpyAsync(&pinned_->value, &word.value, sizeof(Epoch), cudaMemcpyDefault, writing_), "a copy of a word");
  finish();
  return pinned_->value;
}

/// Only this proxy adds to a word that other nodes add to (tandem/block.h), so an addition may read and write.
void GpuAccess::change(Signal& word, SignalOp op, Epoch value) {
  store_behind(writing_, &word.value, op == SignalOp::kSet ? value : value_of(word) + value);
  is_marked_ = false;
}

std::uint64_t GpuAccess::mark_writes() {
  if (!is_marked_) store_behind(writing_, &pinned_->written, ++marks_);
  is_marked_ = true;
  return marks_;
}

bool GpuAccess::are_written(std::uint64_t mark) {
  return std::atomic_ref(pinned_->written).load(std::memory_order_acquire) >= mark;
}

void GpuAccess::finish() { check(cudaStreamSynchronize(writing_), "copies between nodes"); }

}  // namespace tandem::cuda
