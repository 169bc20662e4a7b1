#include "base/serial.h"

namespace tandem {

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

}  // namespace tandem
