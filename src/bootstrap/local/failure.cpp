#include "bootstrap/local/failure.h"

#include <new>

#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

}  // namespace

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
