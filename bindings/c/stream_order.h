#pragma once
/// The order of a world's calls in several streams.

#include <memory>

#include "tandem/world.h"

namespace tandem::c {

/// Calls share plans and staging memory, so that each runs behind the one before, in whatever stream that was.
class StreamOrder {
 public:
  virtual ~StreamOrder() = default;

  /// Enqueues one call in `stream`: `enqueue(is_captured)`.
  template <class Enqueue>
  void then(void* stream, const Enqueue& enqueue) {
    const bool is_captured = begin(stream);
    try {
      enqueue(is_captured);
    } catch (...) {
      end_failed(stream);  // some of it may be there
      throw;
    }
    end(stream);
  }

  /// Within a call: lets `stream` wait until its blocks fit on the device beside the calls of other worlds.
  virtual void reserve(void* stream, int blocks) = 0;
  /// The work in `stream`, which is not captured, is over.
  virtual void ended(void* stream) = 0;

 protected:
  /// Lets `stream` wait for the call before. Returns whether it is captured.
  virtual bool begin(void* stream) = 0;
  virtual void end(void* stream) = 0;
  virtual void end_failed(void* stream) noexcept = 0;
};

/// The one that suits a world's device of so many SMs.
std::unique_ptr<StreamOrder> make_stream_order(DeviceKind kind, int device, int sms);

}  // namespace tandem::c
