#pragma once
/// Captured work that can be launched again and again, where the devices have such a thing.

#include <functional>
#include <memory>

#include "tandem/stream.h"

namespace tandem::test {

struct Replay {
  virtual ~Replay() = default;
  virtual void launch() = 0;
};

/// Captures the work that the function enqueues into the stream. Empty: nothing is captured.
using Capture = std::function<std::unique_ptr<Replay>(Stream&, const std::function<void()>&)>;

}  // namespace tandem::test
