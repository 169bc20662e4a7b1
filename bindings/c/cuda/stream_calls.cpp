// CUDA's streams and events for the order of calls.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <vector>

#include "host_order.h"
#include "last_call.h"
#include "tandem/error.h"

namespace tandem::c {

namespace {

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw RuntimeFailure(fmt::format("{}: {}", what, cudaGetErrorString(code)));
}

cudaStream_t stream_of(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t event_of(void* handle) { return static_cast<cudaEvent_t>(handle); }

#if CUDART_VERSION >= 13000
constexpr auto capture_info = [](auto... arguments) { return cudaStreamGetCaptureInfo(arguments...); };
#else
constexpr auto capture_info = [](auto... arguments) { return cudaStreamGetCaptureInfo_v3(arguments...); };
#endif

class CudaStreamCalls final : public StreamCalls {
 public:
  unsigned long long capture_of(void* stream) const override {
    cudaStreamCaptureStatus status{};
    unsigned long long capture = 0;
    check(cudaStreamGetCaptureInfo(stream_of(stream), &status, &capture), "cudaStreamGetCaptureInfo");
    if (status == cudaStreamCaptureStatusInvalidated) return ~0ULL;  // its number is lost
    return status == cudaStreamCaptureStatusNone ? 0 : capture;
  }
  unsigned long long number_of(void* stream) const override {
    unsigned long long number = 0;
    check(cudaStreamGetId(stream_of(stream), &number), "cudaStreamGetId");
    return number;
  }
  bool is_of_thread(void* stream) const override { return stream_of(stream) == cudaStreamPerThread; }
  void* make_event() const override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    return event;
  }
  void destroy_event(void* event) const noexcept override { cudaEventDestroy(event_of(event)); }
  void record(void* event, void* stream) const override {
    check(cudaEventRecord(event_of(event), stream_of(stream)), "cudaEventRecord");
  }
  void wait(void* stream, void* event) const override {
    check(cudaStreamWaitEvent(stream_of(stream), event_of(event)), "cudaStreamWaitEvent");
  }
  void* record_in_graph(void* event, void* stream, void* previous) const override {
    cudaStreamCaptureStatus status{};
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* ends = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    std::size_t count = 0;
    check(capture_info(stream_of(stream), &status, nullptr, &graph, &ends, &edges, &count), "cudaStreamGetCaptureInfo");
    std::vector<cudaGraphNode_t> before(ends, ends + count);
    if (previous != nullptr) before.push_back(static_cast<cudaGraphNode_t>(previous));
    cudaGraphNode_t made = nullptr;
    check(cudaGraphAddEventRecordNode(&made, graph, before.data(), before.size(), event_of(event)),
          "cudaGraphAddEventRecordNode");
    return made;
  }
  void wait_in_graph(void* stream, void* event) const override {
    check(cudaStreamWaitEvent(stream_of(stream), event_of(event), cudaEventWaitExternal), "cudaStreamWaitEvent");
  }
  void exchange_capture_mode(int& mode) const override {
    static_assert(kRelaxed == cudaStreamCaptureModeRelaxed);
    auto other = static_cast<cudaStreamCaptureMode>(mode);
    check(cudaThreadExchangeStreamCaptureMode(&other), "cudaThreadExchangeStreamCaptureMode");
    mode = other;
  }
};

}  // namespace

std::unique_ptr<StreamOrder> make_stream_order(DeviceKind kind, int device, int sms, bool orders_graphs) {
  static const CudaStreamCalls calls;
  if (kind == DeviceKind::kGpu) return std::make_unique<LastCall>(calls, launches_on(device), sms, orders_graphs);
  return std::make_unique<HostOrder>();
}

}  // namespace tandem::c
