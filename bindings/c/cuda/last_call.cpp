#include "cuda/last_call.h"

#include <cstdint>
#include <iterator>

#include "cuda/cuda_error.h"
#include "host_order.h"
#include "tandem/error.h"

namespace tandem::c {

LastCall::Place LastCall::place_of(cudaStream_t stream) {
  Place place;
  cudaStreamCaptureStatus status{};
  check(cudaStreamGetCaptureInfo(stream, &status, &place.capture), "cudaStreamGetCaptureInfo");
  if (status == cudaStreamCaptureStatusNone) {
    place.capture = 0;
    check(cudaStreamGetId(stream, &place.stream), "cudaStreamGetId");
  } else {
    place.stream = reinterpret_cast<std::uintptr_t>(stream);
  }
  return place;
}

LastCall::End& LastCall::end_of(const Place& place) {
  End& end = ends_[place.capture];
  if (end.event != nullptr) return end;
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  end.event.reset(event);
  // Numbers of captures grow: the oldest one has ended. That of plain calls is 0.
  if (ends_.size() > kMostCaptures) ends_.erase(std::next(ends_.begin(), ends_.contains(0) ? 1 : 0));
  return end;
}

bool LastCall::begin(void* stream) {
  place_ = place_of(static_cast<cudaStream_t>(stream));
  wait(static_cast<cudaStream_t>(stream), place_);
  return place_.capture != 0;
}

void LastCall::end(void* stream) { check(note(static_cast<cudaStream_t>(stream), place_), "cudaEventRecord"); }

void LastCall::end_failed(void* stream) noexcept { note(static_cast<cudaStream_t>(stream), place_); }

void LastCall::wait(cudaStream_t stream, const Place& place) {
  End& last = end_of(place);
  // A captured stream is told by its handle, which stands for another one in every thread here.
  const bool is_same = last.stream == place.stream && !(place.capture != 0 && stream == cudaStreamPerThread);
  if (!last.is_set || is_same) return;
  if (place.capture == 0) several_streams_ = true;
  if (last.is_over) return;
  if (!last.is_noted) {
    cudaStreamCaptureStatus status{};
    check(cudaStreamIsCapturing(last.handle, &status), "cudaStreamIsCapturing");
    if (status != cudaStreamCaptureStatusNone)
      throw InvalidArgument(
          "stream: another one than that of the calls before, which is being captured; allowed once tandem_synchronize "
          "was called for that one before its capture");
    check(cudaEventRecord(last.event.get(), last.handle), "cudaEventRecord");
    last.is_noted = true;
  }
  check(cudaStreamWaitEvent(stream, last.event.get()), "cudaStreamWaitEvent");
}

cudaError_t LastCall::note(cudaStream_t stream, const Place& place) {
  End& last = end_of(place);
  // Another thread could not ask this one's own stream for the event.
  const bool is_noted = several_streams_ || place.capture != 0 || stream == cudaStreamPerThread;
  const cudaError_t code = is_noted ? cudaEventRecord(last.event.get(), stream) : cudaSuccess;
  if (code != cudaSuccess) return code;
  last.is_set = true;
  last.is_over = false;
  last.is_noted = is_noted;
  last.stream = place.stream;
  last.handle = stream;
  return code;
}

void LastCall::ended(void* stream) {
  const Place place = place_of(static_cast<cudaStream_t>(stream));
  const auto last = ends_.find(0);
  if (place.capture == 0 && last != ends_.end() && last->second.stream == place.stream) last->second.is_over = true;
}

std::unique_ptr<StreamOrder> make_stream_order(DeviceKind kind) {
  if (kind == DeviceKind::kGpu) return std::make_unique<LastCall>();
  return std::make_unique<HostOrder>();
}

}  // namespace tandem::c
