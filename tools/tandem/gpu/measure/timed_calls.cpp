#include "tools/tandem/gpu/measure/timed_calls.h"

namespace tandem::cli {

namespace {

constexpr int kFirstCalls = 2;

}  // namespace

TimedCalls::TimedCalls(Stream& stream, std::function<void()> call, int calls, bool graph)
    : stream_(stream), call_(std::move(call)), calls_(calls) {
  cuda::check(cudaEventCreate(&begin_), "cudaEventCreate");
  cuda::check(cudaEventCreate(&end_), "cudaEventCreate");
  if (graph) graph_ = std::make_unique<cuda::Graph>(static_cast<cudaStream_t>(stream_.native()), [&] { enqueue(); });
}

TimedCalls::~TimedCalls() {
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
}

void TimedCalls::enqueue() {
  auto* const stream = static_cast<cudaStream_t>(stream_.native());
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cuda::check(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
  // In a graph an event becomes a node only on request.
  const unsigned how = capture == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault;
  for (int i = 0; i < kFirstCalls; ++i) call_();
  cuda::check(cudaEventRecordWithFlags(begin_, stream, how), "cudaEventRecord");
  for (int i = 0; i < calls_; ++i) call_();
  cuda::check(cudaEventRecordWithFlags(end_, stream, how), "cudaEventRecord");
}

double TimedCalls::run() {
  graph_ ? graph_->launch() : enqueue();
  stream_.synchronize();
  float ms = 0;
  cuda::check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
  return static_cast<double>(ms) * 1000 / calls_;
}

}  // namespace tandem::cli
