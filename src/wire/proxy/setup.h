#pragma once
/// The parts of a world that a proxy needs.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "wire/access.h"
#include "wire/heartbeats.h"
#include "wire/mailbox.h"
#include "wire/message.h"

namespace tandem::wire {

/// The functions are called on the proxy's thread.
struct ProxySetup {
  Place place;
  bootstrap::Key secret;
  Seal seal = Seal::kHeaders;
  /// Wakes the PE's waits, whose words or requests may have changed.
  std::function<void()> ring;
  /// Returns whether the world is over: requests are dropped then, and nothing is written any more.
  std::function<bool()> is_over;
  /// Ends the world.
  std::function<void(const std::exception_ptr&)> on_error;
  std::optional<Heartbeat> heartbeat = {};
  /// The time after which a PE that is not heard is lost, or a connection that broke is an error.
  double silence_s = 3;
  /// Returns a PE's name for errors.
  std::function<std::string(int pe)> name_of = [](int pe) { return "PE " + std::to_string(pe); };
  /// How long the proxy looks for more work, after some, before it sleeps.
  std::chrono::microseconds search{0};
  /// Reaches the PE's memory.
  std::shared_ptr<Access> access = std::make_shared<HostAccess>();
};

}  // namespace tandem::wire
