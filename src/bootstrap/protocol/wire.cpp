#include "bootstrap/protocol/wire.h"

namespace tandem::bootstrap {

namespace {

constexpr std::uint32_t kMagic = 0x314d4454;  // "TDM1"

}  // namespace

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
