#pragma once
/// How a record of a GPU is drawn.

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
/// What a block has written of its part of the records, which begins with its life; nothing where it did not run. Slots
/// that it left out still hold what earlier replays wrote, or nothing. The life's payload is the number of operations.
std::vector<cuda::Record> records_of_block(std::span<const cuda::Record> part);
/// The operations of a block, without its life. Of a load or store only the begin is recorded; it goes on until the
/// next operation of its block or role begins, which waits for a load's data.
std::vector<cuda::Record> operations_of(const std::vector<cuda::Record>& block);
/// Payload that a record's operation moved.
Size bytes_of(const cuda::Record& record);
/// Bytes in memory, flags included, of the packets of a packet operation.
Size packet_bytes(const cuda::Record& record);

}  // namespace tandem::trace
