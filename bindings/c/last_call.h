#pragma once
/// The order of a world's calls in several streams.

#include <cuda_runtime.h>

#include <map>
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
  struct Place {
    /// A number, since a new stream may have the handle of one that was destroyed; of one that is captured, which has
    /// to stay, the handle: it may not be asked for its number.
    unsigned long long stream = 0;
    unsigned long long capture = 0;  ///< 0: none
  };
  struct End {
    std::unique_ptr<CUevent_st, EventDestroy> event;
    unsigned long long stream = 0;
    bool is_set = false;
  };
  /// Captures whose last call is known: more than are made at a time.
  static constexpr std::size_t kMostCaptures = 64;

  static Place place_of(cudaStream_t stream);
  static void check_noted(cudaError_t code);
  /// With an event of the current GPU.
  End& end_of(const Place& place);
  void wait(cudaStream_t stream, const Place& place);
  cudaError_t note(cudaStream_t stream, const Place& place);

  std::map<unsigned long long, End> ends_;  // by capture
};

}  // namespace tandem::c
