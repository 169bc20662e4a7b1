#include "tools/tandem/data/collective_data.h"

#include <fmt/format.h>

#include "tandem/error.h"
#include "tools/tandem/data/collective_data_kinds.h"

namespace tandem::cli {

std::unique_ptr<CollectiveData> make_collective_data(const CollectiveCall& call) {
  if (call.wire != WireFormat::kType) return make_quantised_data(call);
  const bool is_reduction = reduces(call.collective);
  if (call.data == DataKind::kNormal && !is_reduction)
    throw InvalidArgument(
        fmt::format("--data: normal given, but {} moves bytes, which are compared exactly", name(call.collective)));
  return is_reduction ? make_reduced_data(call) : make_moved_data(call);
}

}  // namespace tandem::cli
