#include "trace/gpu/gpu_spans.h"

#include <algorithm>
#include <map>

#include "tandem/signal.h"

namespace tandem::trace {

using cuda::Record;
using cuda::RecordKind;

Drawn drawn(RecordKind kind) {
  switch (kind) {
    case RecordKind::kBlock:
      return {SpanKind::kKernel, "block"};
    case RecordKind::kLoad:
      return {SpanKind::kLoad, "load"};
    case RecordKind::kStore:
      return {SpanKind::kStore, "store"};
    case RecordKind::kCopy:
      return {SpanKind::kCopy, "copy"};
    case RecordKind::kPut:
      return {SpanKind::kPut, "put"};
    case RecordKind::kGet:
      return {SpanKind::kGet, "get"};
    case RecordKind::kSignal:
    case RecordKind::kSignalAll:
      return {SpanKind::kSignal, "signal"};
    case RecordKind::kWait:
      return {SpanKind::kWait, "wait"};
    case RecordKind::kTest:
      return {SpanKind::kWait, "test"};
    case RecordKind::kFence:
      return {SpanKind::kWait, "fence"};
    case RecordKind::kQuiet:
      return {SpanKind::kWait, "quiet"};
    case RecordKind::kAtomic:
      return {SpanKind::kSignal, "atomic"};
    case RecordKind::kSync:
      return {SpanKind::kWait, "sync"};
    case RecordKind::kPacketPut:
      return {SpanKind::kStore, "packets"};
    case RecordKind::kPacketGet:
      return {SpanKind::kWait, "packets"};
    case RecordKind::kCompute:
      return {SpanKind::kCompute, "tile"};
    case RecordKind::kEnd:
      break;
  }
  return {SpanKind::kCompute, ""};
}

namespace {

bool is_packets(RecordKind kind) { return kind == RecordKind::kPacketPut || kind == RecordKind::kPacketGet; }

constexpr std::uint64_t kLowerHalf = 0xFFFF'FFFF;

/// Returns whether a record holds only the begin of its operation.
bool goes_on(const Record& record) {
  return record.kind == RecordKind::kLoad || (record.kind == RecordKind::kStore && record.duration == 0);
}

/// Returns whether an operation with a late end was over at `until`, when the next one of its role had begun.
bool is_over(const Record& record, std::uint64_t until) {
  const bool is_data = record.kind == RecordKind::kStore || record.kind == RecordKind::kPut;
  return is_data && record.begin + record.duration > until;
}

}  // namespace

Size bytes_of(const Record& record) {
  switch (record.kind) {
    case RecordKind::kBlock:
    case RecordKind::kSignal:
    case RecordKind::kSignalAll:
    case RecordKind::kWait:
    case RecordKind::kTest:
    case RecordKind::kCompute:
    case RecordKind::kEnd:
      return 0;
    default:
      return static_cast<Size>(is_packets(record.kind) ? record.payload & kLowerHalf : record.payload);
  }
}

std::vector<Record> records_of_block(std::span<const Record> part) {
  const Record& life = part.front();
  std::vector<Record> records;
  if (life.begin == 0) return records;
  const std::size_t slots = std::min(static_cast<std::size_t>(life.payload >> 32), part.size() - 1);
  records.reserve(slots + 1);
  records.push_back(life);
  records.front().payload &= kLowerHalf;
  for (const Record& record : part.subspan(1, slots))
    if (record.begin >= life.begin) records.push_back(record);
  return records;
}

std::vector<Record> operations_of(const std::vector<Record>& block) {
  std::vector<Record> operations(block.begin() + 1, block.end());
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Record& a, const Record& b) { return a.begin < b.begin; });
  const std::uint64_t end = block.front().begin + block.front().duration;
  std::map<int, std::uint64_t> next;  // by role: begin of the next operation
  for (auto record = operations.rbegin(); record != operations.rend(); ++record) {
    const std::uint64_t until = next.try_emplace(record->role, end).first->second;
    next[record->role] = record->begin;
    // The puts are over. One warp saw their end and another the next begin, so the two differ by less than one
    // operation.
    if (until > record->begin && (goes_on(*record) || is_over(*record, until)))
      record->duration = static_cast<std::uint32_t>(until - record->begin);
  }
  std::erase_if(operations, [](const Record& record) { return record.kind == RecordKind::kEnd; });
  return operations;
}

Size packet_bytes(const Record& record) {
  const auto bytes = static_cast<Size>(record.payload & kLowerHalf);
  return record.detail == sizeof(LL128Line) ? packets_for<LL128Line>(bytes) * Size{sizeof(LL128Line)}
                                            : packets_for<LLPacket>(bytes) * Size{sizeof(LLPacket)};
}

}  // namespace tandem::trace
