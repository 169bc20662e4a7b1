#include "bootstrap/local/failure.h"

#include <fmt/format.h>

#include <new>

#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

}  // namespace

Bytes Failure::encode() const {
  constexpr std::size_t kept = kMostText - 256;  // whoever passes it on adds a few words
  const std::string sent =
      text.size() <= kMostText ? text : fmt::format("{} ({} more bytes)", text.substr(0, kept), text.size() - kept);
  return Writer().u32(static_cast<std::uint32_t>(kind)).text(sent).result();
}

Failure Failure::decode(View payload) {
  Reader reader(payload);
  Failure failure;
  failure.kind = static_cast<FailureKind>(reader.u32());
  failure.text = reader.text();
  reader.end();
  return failure;
}

void Failure::raise() const {
  switch (kind) {
    case FailureKind::kInvalidArgument:
      throw InvalidArgument(text);
    case FailureKind::kTimeout:
      throw Timeout(text);
    case FailureKind::kUnsupported:
      throw Unsupported(text);
    case FailureKind::kOutOfMemory:
      throw OutOfMemory(text);
    case FailureKind::kRuntimeFailure:
      break;
  }
  throw RuntimeFailure(text);
}

Failure failure_of(const std::exception& error) {
  if (is<std::bad_alloc>(error)) return {FailureKind::kOutOfMemory, "out of memory on the host"};
  const FailureKind kind = is<InvalidArgument>(error) ? FailureKind::kInvalidArgument
                           : is<Timeout>(error)       ? FailureKind::kTimeout
                           : is<Unsupported>(error)   ? FailureKind::kUnsupported
                           : is<OutOfMemory>(error)   ? FailureKind::kOutOfMemory
                                                      : FailureKind::kRuntimeFailure;
  return {kind, error.what()};
}

}  // namespace tandem::bootstrap
