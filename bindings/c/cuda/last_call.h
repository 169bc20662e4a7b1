#pragma once
/// The order of a world's calls in several CUDA streams.

#include <cuda_runtime.h>

#include <map>
#include <memory>

#include "stream_order.h"

namespace tandem::c {

struct EventDestroy {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};

/// An event behind every call would keep the next one in the stream from starting early (1 KB on two H200s: 6.4 us a
/// call instead of 4.5). While all calls of a world are in one stream there is no event. The first call in another
/// stream records one in the first stream, unless that was synchronized before. From then on each call has its event.
/// An earlier call's stream is not used any more, because it may have been destroyed or be captured. Every thread has
/// its own cudaStreamPerThread, so calls there have their event at once.
///
/// A graph cannot wait for what is outside of it, nor be waited for: calls of one capture follow each other, and plain
/// calls do.
class LastCall final : public StreamOrder {
 public:
  void ended(void* stream) override;

 protected:
  bool begin(void* stream) override;
  void end(void* stream) override;
  void end_failed(void* stream) noexcept override;

 private:
  struct Place {
    /// A number, since a new stream may have the handle of a destroyed one. A stream that is captured must stay and may
    /// not be asked for its number, so for it this is the handle.
    unsigned long long stream = 0;
    unsigned long long capture = 0;  ///< 0: none
  };
  struct End {
    std::unique_ptr<CUevent_st, EventDestroy> event;
    unsigned long long stream = 0;
    cudaStream_t handle = nullptr;
    bool is_set = false;    // there was a call
    bool is_over = false;   // ... and it is
    bool is_noted = false;  // ... with the event behind it
  };
  /// Captures whose last call is known: more than are made at a time.
  static constexpr std::size_t kMostCaptures = 64;

  static Place place_of(cudaStream_t stream);
  /// With an event of the current GPU.
  End& end_of(const Place& place);
  void wait(cudaStream_t stream, const Place& place);
  cudaError_t note(cudaStream_t stream, const Place& place);

  Place place_;                             // of the call that has begun
  std::map<unsigned long long, End> ends_;  // by capture
  bool several_streams_ = false;            // of plain calls
};

}  // namespace tandem::c
