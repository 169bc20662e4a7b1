#include "world.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem::c {

namespace {

/// Plans are made for sizes up to these, each four times the one before.
constexpr Size kLeastClass = Size{64} << 10;
/// Pieces are whole lines of memory.
constexpr Size kLine = 128;
constexpr Size kLeastStaging = Size{64} << 10;

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw RuntimeFailure(fmt::format("{}: {}", what, cudaGetErrorString(code)));
}

/// `rows` rows of `width` bytes.
void copy_rows(void* to, Size to_pitch, const void* from, Size from_pitch, Size width, Size rows, cudaStream_t stream) {
  if (width == 0 || rows == 0) return;
  const auto size = [](Size bytes) { return static_cast<std::size_t>(bytes); };
  check(rows == 1 ? cudaMemcpyAsync(to, from, size(width), cudaMemcpyDeviceToDevice, stream)
                  : cudaMemcpy2DAsync(to, size(to_pitch), from, size(from_pitch), size(width), size(rows),
                                      cudaMemcpyDeviceToDevice, stream),
        "copy to or from staging memory");
}

}  // namespace

CWorld::CWorld(std::unique_ptr<CudaProcess> process, Size staging_bytes)
    : process_(std::move(process)), staging_bytes_(round_up(std::max(staging_bytes, kLeastStaging), kLine)) {
  staging_in_ = world().heap().allocate<std::byte>(staging_bytes_, "staged input");
  staging_out_ = world().heap().allocate<std::byte>(staging_bytes_, "staged output");
  group_ = std::make_unique<SendRecvGroup>(world());
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  end_of_last_.reset(event);
}

void* CWorld::allocate(Size bytes) {
  const auto memory = world().heap().allocate<std::byte>(bytes, fmt::format("allocation {}", allocations_++));
  buffers_.push_back({memory.local(), bytes, memory});
  return memory.local();
}

void CWorld::free(const void* pointer) {
  world().heap().free(Symm<const std::byte>(static_cast<const std::byte*>(pointer), 0, 0));
  buffers_.erase(
      std::remove_if(buffers_.begin(), buffers_.end(), [&](const Buffer& buffer) { return buffer.begin == pointer; }),
      buffers_.end());
}

void CWorld::register_memory(void* pointer, Size bytes) {
  const auto memory = process_->register_buffer(pointer, bytes);
  buffers_.push_back({static_cast<const std::byte*>(pointer), bytes, memory});
}

void CWorld::unregister_memory(void* pointer) {
  process_->unregister_buffer(pointer);
  buffers_.erase(
      std::remove_if(buffers_.begin(), buffers_.end(), [&](const Buffer& buffer) { return buffer.begin == pointer; }),
      buffers_.end());
}

std::optional<Symm<std::byte>> CWorld::shared(const void* pointer, Size bytes) const {
  const auto* const begin = static_cast<const std::byte*>(pointer);
  for (const Buffer& buffer : buffers_)
    if (begin >= buffer.begin && begin + bytes <= buffer.begin + buffer.bytes)
      return buffer.memory + (begin - buffer.begin);
  return std::nullopt;
}

Size CWorld::parts(Collective collective) const {
  const int n = process_->pes();
  return std::max(input_elements(collective, 1, n, 0, 0), output_elements(collective, 1, n, 0, 0));
}

CollectivePlan& CWorld::plan_for(const Call& call, Size count) {
  const Size per_count = parts(call.collective) * size_of(call.type);
  Size bytes = kLeastClass;
  while (bytes < count * per_count) bytes *= 4;
  std::unique_ptr<CollectivePlan>& plan = plans_[{call.collective, call.type, call.op, call.root, bytes}];
  if (plan == nullptr) {
    CollectiveOptions options;
    options.type = call.type;
    options.op = call.op;
    options.root = call.root;
    options.max_count = std::max<Size>(bytes / per_count, count);
    plan = make_collective(world(), call.collective, options);
  }
  return *plan;
}

void CWorld::run(const Call& call) {
  const int n = process_->pes();
  const Size element = size_of(call.type);
  const Size ins = input_elements(call.collective, call.count, n, process_->pe(), call.root);
  const Size outs = output_elements(call.collective, call.count, n, process_->pe(), call.root);
  // On every PE, since where both lie decides, alike on all of them, whether a call is staged.
  if (call.count > 0 && (call.in == nullptr || call.out == nullptr))
    throw InvalidArgument(fmt::format("{}: NULL given for {}; every PE gives both, where it has no elements too",
                                      name(call.collective), call.in == nullptr ? "in" : "out"));
  order_after_last(call.stream);
  const auto in = shared(call.in, ins * element);
  const auto out = shared(call.out, outs * element);
  if (in && out) {
    Stream stream = process_->borrow_stream(call.stream);
    plan_for(call, call.count).run(stream, *in, *out, call.count);
  } else {
    run_staged(call);
  }
}

void CWorld::run_staged(const Call& call) {
  const int n = process_->pes();
  const Size element = size_of(call.type);
  const Size most = staging_bytes_ / parts(call.collective) / kLine * kLine / element;
  if (most == 0) throw InvalidArgument(fmt::format("staging_bytes: {} is too little for {} PEs", staging_bytes_, n));
  Stream stream = process_->borrow_stream(call.stream);
  for (Size begin = 0; begin == 0 || begin < call.count; begin += most) {
    const Size count = std::min(most, call.count - begin);
    CollectivePlan& plan = plan_for(call, count);
    const Size in_rows = input_elements(call.collective, 1, n, process_->pe(), call.root);
    const Size out_rows = output_elements(call.collective, 1, n, process_->pe(), call.root);
    const Size piece = count * element;
    copy_rows(staging_in_.local(), piece, static_cast<const std::byte*>(call.in) + begin * element,
              call.count * element, piece, in_rows, call.stream);
    plan.run(stream, staging_in_, staging_out_, count);
    copy_rows(static_cast<std::byte*>(call.out) + begin * element, call.count * element, staging_out_.local(), piece,
              piece, out_rows, call.stream);
  }
}

/// Calls share plans and staging memory, so that they run one after the other.
void CWorld::order_after_last(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  if (status != cudaStreamCaptureStatusNone) return;  // a graph cannot wait for what is outside of it
  if (has_run_ && stream != last_stream_) {
    check(cudaEventRecord(end_of_last_.get(), last_stream_), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream, end_of_last_.get()), "cudaStreamWaitEvent");
  }
  has_run_ = true;
  last_stream_ = stream;
}

void CWorld::send_recv(const std::vector<Send>& sends, const std::vector<Receive>& receives, cudaStream_t stream) {
  order_after_last(stream);
  Stream borrowed = process_->borrow_stream(stream);
  group_->run(borrowed, sends, receives);
  has_sent_ = true;
}

void CWorld::copy(void* to, const void* from, Size bytes, cudaStream_t stream) {
  if (to != from) copy_rows(to, bytes, from, bytes, bytes, 1, stream);
}

void CWorld::synchronize(cudaStream_t stream) {
  Stream borrowed = process_->borrow_stream(stream);
  borrowed.synchronize();
  if (has_sent_) group_->check(borrowed);
}

}  // namespace tandem::c
