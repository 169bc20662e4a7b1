#pragma once
/// The order of a world's calls in several streams.

#include <cuda_runtime.h>

#include <memory>

namespace tandem::c {

struct EventDestroy {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};

/// Calls share plans and staging memory, so that each runs behind the one before, in whatever stream that was. Of an
/// earlier call's stream nothing is used: it may have been destroyed, or be captured by now.
///
/// A graph cannot wait for what is outside of it, nor be waited for: calls of one capture follow each other, and plain
/// calls do.
class LastCall {
 public:
  /// The current GPU's.
  LastCall();

  /// Enqueues one call in `stream`.
  template <class Enqueue>
  void then(cudaStream_t stream, const Enqueue& enqueue) {
    const Place place = place_of(stream);
    wait(stream, place);
    try {
      enqueue();
    } catch (...) {
      note(stream, place);  // some of it may be there
      throw;
    }
    check_noted(note(stream, place));
  }

 private:
  /// Numbers, since a new stream may have the handle of one that was destroyed.
  struct Place {
    unsigned long long stream = 0;
    unsigned long long capture = 0;  ///< 0: none
  };
  struct End {
    std::unique_ptr<CUevent_st, EventDestroy> event;
    Place place;
    bool is_set = false;
  };

  static Place place_of(cudaStream_t stream);
  static void check_noted(cudaError_t code);
  End& end_of(const Place& place) { return place.capture == 0 ? plain_ : captured_; }
  void wait(cudaStream_t stream, const Place& place);
  cudaError_t note(cudaStream_t stream, const Place& place);

  End plain_;
  End captured_;
};

}  // namespace tandem::c
