#pragma once
/// The reason of a world's end, in the form in which it travels between processes.

#include <cstdint>
#include <exception>
#include <string>

#include "bootstrap/protocol/wire.h"

namespace tandem::bootstrap {

enum class FailureKind : std::uint32_t { kInvalidArgument = 1, kTimeout, kRuntimeFailure, kUnsupported, kOutOfMemory };

struct Failure {
  /// Bytes of a text that other processes get. A longer one, of a user's exception perhaps, fits no message.
  static constexpr std::size_t kMostText = std::size_t{16} << 10;

  FailureKind kind = FailureKind::kRuntimeFailure;
  std::string text;

  Bytes encode() const;
  static Failure decode(View payload);
  /// Throws the exception of that kind.
  [[noreturn]] void raise() const;
};

/// Returns kind and text of an exception, for other processes.
Failure failure_of(const std::exception& error);

}  // namespace tandem::bootstrap
