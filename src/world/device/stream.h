#pragma once
/// A stream of a device: work in order.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "tandem/impl/cuda/context.h"
#include "tandem/stream.h"
#include "wire/access.h"
#include "wire/mailbox.h"
#include "world/device/self_test.h"

namespace tandem::world {

using cuda::Context;
using cuda::WaitReport;

/// The use that a PE makes of a stream.
struct StreamUse {
  int device = 0;
  int pe = 0;
  int pes = 0;  ///< PEs of the world; 0: not known
  std::string name;
  int sms = 1;      ///< SMs of the device that the PE may use
  int sharing = 1;  ///< PEs on the device
  /// In a world of several nodes, of devices that have mailboxes.
  wire::Mailbox* mailbox = nullptr;
  wire::Access* access = nullptr;  ///< of the PE's proxy
  bool early_launch = false;
  /// Called, on any thread, when work fails and only the host notices; the stream does nothing afterwards.
  std::function<void(const std::exception_ptr&)> on_error = {};
  const void* world = nullptr;  ///< its identity, for Devices::wait_until_idle
};

/// A stream whose calls make its device current while they last. They throw RuntimeFailure if the device refuses.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;

  virtual void launch(const detail::KernelLaunch& kernel, const Context& context) = 0;
  virtual void gemm(const Gemm& gemm, const Context& context) = 0;
  /// Returns whether it takes GEMMs of these sizes and types with `sum` set. The answer is the same on all PEs.
  virtual bool adds_up(const Gemm& gemm) const = 0;
  /// Copies between addresses of devices.
  virtual void copy(const Context& context, void* to, const void* from, Size bytes) = 0;
  /// Writes a signal word. With `from` the value is read there when the stream reaches this work, else it is `value`.
  virtual void write_signal(const Context& context, Signal* word, const Epoch* from, Epoch value) = 0;
  virtual void wait_signal(const Context& context, const Signal* word, Epoch value) = 0;
  virtual void compare_calls(const Context& context, const detail::CallComparison& comparison) = 0;
  virtual std::shared_ptr<detail::EventState> record() = 0;
  virtual void wait(const std::shared_ptr<detail::EventState>& event) = 0;
  /// Blocks until the stream is empty. Throws if work has failed.
  virtual void synchronize() = 0;
  /// Returns the native stream; null if other libraries cannot use it.
  virtual void* native() = 0;

  // The following functions are for the world itself, on its own stream.

  /// Copies between addresses, either or both of which may be the host's.
  virtual void copy_host(void* to, const void* from, Size bytes) = 0;
  virtual void fill(void* memory, int byte, Size bytes) = 0;
  /// Ends the waits of the context's PE in the host's name (kAbortedByHost), even while kernels run on the device.
  virtual void end_waits(const Context& context) noexcept = 0;
  /// Writes this PE's patterns to all PEs.
  virtual void write_patterns(const SelfTest& test) = 0;
  /// Counts wrong words, once all PEs have written. `wrong[p]` counts the words that PE p wrote here, and
  /// `wrong[pes + p]` the words that this PE reads back from PE p. `wrong` is pinned memory, cleared before.
  virtual void read_patterns(const SelfTest& test, std::uint32_t* wrong) = 0;
};

}  // namespace tandem::world
