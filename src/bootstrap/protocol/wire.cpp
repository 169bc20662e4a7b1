#include "bootstrap/protocol/wire.h"

namespace tandem::bootstrap {

namespace {

constexpr std::uint32_t kMagic = 0x314d4454;  // "TDM1"

}  // namespace

Writer& Writer::number(std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  return *this;
}

Writer& Writer::bytes(View value) {
  u32(static_cast<std::uint32_t>(value.size()));
  bytes_.insert(bytes_.end(), value.begin(), value.end());
  return *this;
}

View Reader::take(std::size_t size) {
  if (size > left_.size()) throw BadMessage("a truncated message");
  const View taken = left_.first(size);
  left_ = left_.subspan(size);
  return taken;
}

std::uint64_t Reader::number(std::size_t size) {
  std::uint64_t value = 0;
  const View taken = take(size);
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(taken[i]) << (8 * i);
  return value;
}

View Reader::bytes() { return take(u32()); }

std::string Reader::text() {
  const View taken = bytes();
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

void Reader::end() const {
  if (!left_.empty()) throw BadMessage("a message with more than its fields");
}

Bytes FrameWriter::frame(Kind kind, View payload) {
  Writer header;
  header.u32(kMagic).u32(static_cast<std::uint32_t>(kind)).u64(number_++);
  header.bytes(payload);
  Bytes frame = header.result();
  const Mac mac = authenticate(key_, frame);
  frame.insert(frame.end(), mac.begin(), mac.end());
  return frame;
}

std::optional<Frame> FrameReader::next() {
  if (buffer_.size() < kFrameHeader) return std::nullopt;
  Reader header(View(buffer_).first(kFrameHeader));
  if (header.u32() != kMagic) throw BadMessage("not a message of Tandem's");
  const auto kind = static_cast<Kind>(header.u32());
  if (header.u64() != number_) throw BadMessage("a message out of order, or repeated");
  const std::size_t length = header.u32();
  if (length > most_payload_) throw BadMessage("an oversized message");
  const std::size_t whole = kFrameOverhead + length;
  if (buffer_.size() < whole) return std::nullopt;
  const View frame = View(buffer_).first(whole);
  if (!is_authentic(key_, frame.first(kFrameHeader + length), frame.last(sizeof(Mac))))
    throw BadMessage("a message that is not authenticated with the world's secret");
  ++number_;
  const View payload = frame.subspan(kFrameHeader, length);
  Frame result{kind, Bytes(payload.begin(), payload.end())};
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(whole));
  return result;
}

}  // namespace tandem::bootstrap
