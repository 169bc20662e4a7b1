#pragma once
/// The contract of an engine that moves messages between PEs.
///
/// Every message that is sent arrives, whole, at least once, at any time and in any order. One thread uses an endpoint;
/// only `wake` may be called by any thread.

#include <functional>
#include <string>
#include <vector>

#include "base/serial.h"
#include "tandem/range.h"

namespace tandem::wire {

using OnSent = std::function<void()>;

/// A connection to a PE that has broken.
struct Break {
  int pe = 0;
  std::string why;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  /// Returns engine, version and provider. Endpoints of one world have the same.
  virtual std::string name() const = 0;
  virtual Bytes address() const = 0;
  /// Takes the addresses of all PEs. An empty address is that of a PE to which no message will go.
  virtual void connect(const std::vector<Bytes>& addresses) = 0;
  /// Returns the most bytes of a message.
  virtual Size most_bytes() const = 0;
  /// Sends `header`, followed by `data`, to a PE. Returns false if there is no room now, and always once the connection
  /// has broken. Both may change afterwards. With `sent`, the data has to stay until that is called, in this call or by
  /// `poll`. Messages to one PE leave room for those to others. Throws RuntimeFailure.
  virtual bool send(int pe, View header, View data, const OnSent& sent) = 0;
  /// Passes a message that has arrived to `take`. Returns false if there is none.
  virtual bool poll(const std::function<void(View)>& take) = 0;
  /// Blocks until a message may have arrived, there may be room again, or `wake` is called, for `ms` at most.
  virtual void wait(int ms) = 0;
  virtual void wake() = 0;
  /// Returns the connections that were found broken since the last call.
  virtual std::vector<Break> breaks() { return {}; }
};

}  // namespace tandem::wire
