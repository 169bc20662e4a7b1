#pragma once
/// The conversion of a GPU's records to spans.

#include <span>
#include <vector>

#include "tandem/impl/cuda/record.h"
#include "tandem/range.h"
#include "tandem/timeline.h"

namespace tandem::trace {

struct Drawn {
  SpanKind kind;
  const char* label;
};

Drawn drawn(cuda::RecordKind kind);
/// Returns the records that a block wrote, starting with its life, or nothing if it did not run. Unused slots hold data
/// of earlier replays. The life's payload is the number of operations.
std::vector<cuda::Record> records_of_block(std::span<const cuda::Record> part);
/// Returns the operations of a block without its life. For a load or store only the begin is recorded. It lasts until
/// the next operation of its block or role begins, which waits for a load's data.
std::vector<cuda::Record> operations_of(const std::vector<cuda::Record>& block);
/// Returns the payload that a record's operation moved.
Size bytes_of(const cuda::Record& record);
/// Returns the bytes of a packet operation's packets in memory, with their flags.
Size packet_bytes(const cuda::Record& record);

}  // namespace tandem::trace
