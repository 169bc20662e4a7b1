#pragma once
/// The contract of an engine that moves messages between PEs.
///
/// Every message that is sent arrives, whole, at least once, at any time and in any order. One thread uses an endpoint;
/// only `wake` may be called by any thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/serial.h"
#include "tandem/range.h"

namespace tandem::wire {

using OnSent = std::function<void()>;
/// Takes a message. Returns whether it stays in use until it is released.
using Take = std::function<bool(View message)>;

/// The room of an endpoint.
struct Room {
  Size most_bytes = 0;  ///< of a message
  /// Where messages arrive, as long as somebody has it; null: in memory of their own.
  std::shared_ptr<std::byte[]> memory = nullptr;
  std::size_t memory_bytes = 0;
};

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
  virtual Room room() const = 0;
  /// Sends `header`, followed by `data`, to a PE. Returns false if there is no room now, and always once the connection
  /// has broken. Both may change afterwards. With `sent`, the data has to stay until that is called, in this call or by
  /// `poll`. Messages to one PE leave room for those to others. Throws RuntimeFailure.
  virtual bool send(int pe, View header, View data, const OnSent& sent) = 0;
  /// Passes a message that has arrived to `take`. Returns false if there is none.
  virtual bool poll(const Take& take) = 0;
  /// Takes back a message that stayed in use. Few may do so at a time.
  virtual void release(View message) = 0;
  /// Blocks until a message may have arrived, there may be room again, or `wake` is called, for `ms` at most.
  virtual void wait(int ms) = 0;
  virtual void wake() = 0;
  /// Returns the connections that were found broken since the last call.
  virtual std::vector<Break> breaks() { return {}; }
};

}  // namespace tandem::wire
