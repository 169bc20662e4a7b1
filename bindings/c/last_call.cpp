#include "last_call.h"

#include "cuda_error.h"

namespace tandem::c {

LastCall::LastCall() {
  for (End* const end : {&plain_, &captured_}) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    end->event.reset(event);
  }
}

LastCall::Place LastCall::place_of(cudaStream_t stream) {
  Place place;
  cudaStreamCaptureStatus status{};
  check(cudaStreamGetCaptureInfo(stream, &status, &place.capture), "cudaStreamGetCaptureInfo");
  if (status == cudaStreamCaptureStatusNone) place.capture = 0;
  check(cudaStreamGetId(stream, &place.stream), "cudaStreamGetId");
  return place;
}

void LastCall::check_noted(cudaError_t code) { check(code, "cudaEventRecord"); }

void LastCall::wait(cudaStream_t stream, const Place& place) {
  const End& last = end_of(place);
  if (!last.is_set || last.place.capture != place.capture || last.place.stream == place.stream) return;
  check(cudaStreamWaitEvent(stream, last.event.get()), "cudaStreamWaitEvent");
}

cudaError_t LastCall::note(cudaStream_t stream, const Place& place) {
  End& last = end_of(place);
  const cudaError_t code = cudaEventRecord(last.event.get(), stream);
  if (code == cudaSuccess) last.is_set = true, last.place = place;
  return code;
}

}  // namespace tandem::c
