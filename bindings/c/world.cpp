#include "world.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "tandem/only_here.h"

namespace tandem::c {

namespace {

/// Plans are made for sizes up to these, each four times the one before.
constexpr Size kLeastClass = Size{64} << 10;
constexpr Size kLeastStaging = Size{64} << 10;

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw RuntimeFailure(fmt::format("{}: {}", what, cudaGetErrorString(code)));
}

}  // namespace

CWorld::CWorld(std::unique_ptr<CudaProcess> process, Size staging_bytes) : process_(std::move(process)) {
  staging_.bytes = std::max(staging_bytes, kLeastStaging);
  staging_.in = world().heap().allocate<std::byte>(staging_.bytes, "staged input");
  staging_.out = world().heap().allocate<std::byte>(staging_.bytes, "staged output");
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

CollectivePlan& CWorld::plan_for(const Call& call, bool local_in, bool local_out) {
  const int n = process_->pes();
  const Size parts =
      std::max(input_elements(call.collective, 1, n, 0, 0), output_elements(call.collective, 1, n, 0, 0));
  const Size per_count = parts * size_of(call.type);
  Size bytes = kLeastClass;
  while (bytes < call.count * per_count) bytes *= 4;
  std::unique_ptr<CollectivePlan>& plan =
      plans_[{call.collective, call.type, call.op, call.root, bytes, local_in, local_out}];
  if (plan == nullptr) {
    CollectiveOptions options;
    options.type = call.type;
    options.op = call.op;
    options.root = call.root;
    options.max_count = std::max<Size>(bytes / per_count, call.count);
    options.local_in = local_in;
    options.local_out = local_out;
    options.staging = staging_;
    plan = make_collective(world(), call.collective, options);
  }
  return *plan;
}

void CWorld::run(const Call& call) {
  const int n = process_->pes();
  const Size element = size_of(call.type);
  const Size ins = input_elements(call.collective, call.count, n, process_->pe(), call.root) * element;
  const Size outs = output_elements(call.collective, call.count, n, process_->pe(), call.root) * element;
  // On every PE, since where they lie decides, alike on all of them, which of them are copied.
  if (call.count > 0 && (call.in == nullptr || call.out == nullptr))
    throw InvalidArgument(fmt::format("{}: NULL given for {}; every PE gives both, where it has no elements too",
                                      name(call.collective), call.in == nullptr ? "in" : "out"));
  order_after_last(call.stream);
  auto in = shared(call.in, ins);
  auto out = shared(call.out, outs);
  // In place both are the same memory, also where only one of them lies within what peers reach.
  const auto* const in_begin = static_cast<const std::byte*>(call.in);
  auto* const out_begin = static_cast<std::byte*>(call.out);
  const bool overlap = in_begin < out_begin + outs && out_begin < in_begin + ins;
  if (overlap && (!in || !out)) in = out = std::nullopt;
  CollectivePlan& plan = plan_for(call, !in, !out);
  Stream stream = process_->borrow_stream(call.stream);
  plan.run(stream, in ? Symm<const std::byte>(*in) : only_here(world(), in_begin),
           out ? *out : only_here(world(), out_begin), call.count);
}

/// Calls share plans and staging memory, so that they run one after the other.
void CWorld::order_after_last(cudaStream_t stream) {
  process_->check();  // a wait may have given up since, and the caller may have synchronized without this library
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
  if (to == from || bytes == 0) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream), "copy");
}

void CWorld::synchronize(cudaStream_t stream) {
  Stream borrowed = process_->borrow_stream(stream);
  borrowed.synchronize();
  if (has_sent_) group_->check(borrowed);
}

}  // namespace tandem::c
