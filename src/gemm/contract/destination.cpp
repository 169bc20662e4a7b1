#include "gemm/contract/destination.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem {

void check_destination(const Gemm& gemm) {
  if (gemm.destination.broadcast() != nullptr && gemm.rows.slots() != 1)
    throw InvalidArgument(
        fmt::format("gemm: rows.shards * rows.splits is {}, allowed: 1 where tiles go to all PEs", gemm.rows.slots()));
  if (gemm.destination.ring() != nullptr && gemm.order != TileOrder::kPeersFirst)
    throw InvalidArgument(
        fmt::format("gemm: order is {}, allowed: kPeersFirst in a ring", static_cast<int>(gemm.order)));
}

}  // namespace tandem
