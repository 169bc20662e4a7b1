#include "trace/gpu/gpu_part.h"

#include <cstring>
#include <type_traits>

namespace tandem::trace {

namespace {

std::uint64_t bits(Size value) { return static_cast<std::uint64_t>(value); }

void write(Writer& writer, const std::vector<cuda::Record>& records) {
  static_assert(std::is_trivially_copyable_v<cuda::Record>);
  writer.bytes(std::as_bytes(std::span(records)));
}

std::vector<cuda::Record> read_records(Reader& reader) {
  const View bytes = reader.bytes();
  if (bytes.size() % sizeof(cuda::Record) != 0) throw BadMessage("a part of a record");
  std::vector<cuda::Record> records(bytes.size() / sizeof(cuda::Record));
  if (!records.empty()) std::memcpy(records.data(), bytes.data(), bytes.size());
  return records;
}

void write(Writer& writer, const GpuWork& work) {
  writer.u32(static_cast<std::uint32_t>(work.pe)).text(work.name).text(work.stream);
  writer.u32(static_cast<std::uint32_t>(work.kind)).u64(bits(work.bytes)).u64(work.signal).u32(work.hidden ? 1 : 0);
  for (const int number : {work.team.first, work.team.stride, work.team.size, work.team.me, work.team.node_size})
    writer.u32(static_cast<std::uint32_t>(number));
  writer.u64(work.after.size());
  for (const std::size_t before : work.after) writer.u64(before);
  writer.u64(work.blocks.size());
  for (const auto& block : work.blocks) write(writer, block);
}

GpuWork read_work(Reader& reader) {
  GpuWork work;
  work.pe = static_cast<int>(reader.u32());
  work.name = reader.text();
  work.stream = reader.text();
  work.kind = static_cast<SpanKind>(reader.u32());
  work.bytes = static_cast<Size>(reader.u64());
  work.signal = reader.u64();
  work.hidden = reader.u32() != 0;
  for (int* const number : {&work.team.first, &work.team.stride, &work.team.size, &work.team.me, &work.team.node_size})
    *number = static_cast<int>(reader.u32());
  for (std::uint64_t left = reader.u64(); left > 0; --left) work.after.push_back(reader.u64());
  for (std::uint64_t left = reader.u64(); left > 0; --left) work.blocks.push_back(read_records(reader));
  return work;
}

}  // namespace

Bytes GpuPart::encode() const {
  Writer writer;
  writer.u64(bits(lost_work)).u64(base).u64(buffers.size()).u64(work.size());
  for (const GpuBuffer& buffer : buffers)
    writer.u64(bits(buffer.offset)).u64(bits(buffer.bytes)).u64(bits(buffer.element_bytes)).text(buffer.name);
  for (const GpuWork& one : work) write(writer, one);
  return writer.result();
}

GpuPart GpuPart::decode(View bytes) {
  Reader reader(bytes);
  GpuPart part;
  part.lost_work = static_cast<Size>(reader.u64());
  part.base = reader.u64();
  const std::uint64_t buffers = reader.u64();
  const std::uint64_t works = reader.u64();
  for (std::uint64_t i = 0; i < buffers; ++i) {
    GpuBuffer buffer;
    buffer.offset = static_cast<Size>(reader.u64());
    buffer.bytes = static_cast<Size>(reader.u64());
    buffer.element_bytes = static_cast<Size>(reader.u64());
    buffer.name = reader.text();
    part.buffers.push_back(std::move(buffer));
  }
  for (std::uint64_t i = 0; i < works; ++i) part.work.push_back(read_work(reader));
  reader.end();
  return part;
}

void GpuPart::move_to(std::uint64_t new_base, Size bytes) {
  const auto move = [&](std::uint64_t& address) {
    if (address >= base && address - base < bits(bytes)) address = address - base + new_base;
  };
  for (GpuWork& one : work) {
    move(one.signal);
    for (auto& block : one.blocks)
      for (cuda::Record& record : block) move(record.address);
  }
  base = new_base;
}

}  // namespace tandem::trace
