#include "last_call.h"

#include <cstdint>
#include <iterator>

#include "cuda_error.h"

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

void LastCall::check_noted(cudaError_t code) { check(code, "cudaEventRecord"); }

void LastCall::wait(cudaStream_t stream, const Place& place) {
  const End& last = end_of(place);
  if (last.is_set && last.stream != place.stream)
    check(cudaStreamWaitEvent(stream, last.event.get()), "cudaStreamWaitEvent");
}

cudaError_t LastCall::note(cudaStream_t stream, const Place& place) {
  End& last = end_of(place);
  const cudaError_t code = cudaEventRecord(last.event.get(), stream);
  if (code == cudaSuccess) last.is_set = true, last.stream = place.stream;
  return code;
}

}  // namespace tandem::c
