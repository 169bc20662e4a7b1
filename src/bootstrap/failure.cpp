#include "bootstrap/failure.h"

#include "tandem/error.h"

namespace tandem::bootstrap {

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
    case FailureKind::kRuntimeFailure:
      break;
  }
  throw RuntimeFailure(text);
}

}  // namespace tandem::bootstrap
