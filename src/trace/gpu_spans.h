#pragma once
/// How a record of a GPU is drawn.

#include <vector>

#include "tandem/impl/cuda/record.h"
#include "tandem/range.h"
#include "trace/timeline.h"

namespace tandem::trace {

struct Drawn {
  SpanKind kind;
  const char* label;
};

Drawn drawn(cuda::RecordKind kind);
/// The operations of a block, without its life. A load was only issued when its record was written; it goes on until
/// the next operation of its block or role begins, which waits for its data.
std::vector<cuda::Record> operations_of(const std::vector<cuda::Record>& block);
/// Payload that a record's operation moved.
Size bytes_of(const cuda::Record& record);
/// Bytes in memory, flags included, of the packets of a packet operation.
Size packet_bytes(const cuda::Record& record);

}  // namespace tandem::trace
