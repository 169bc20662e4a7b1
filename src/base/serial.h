#pragma once
/// Serialisation: fields of messages that travel between processes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

using Bytes = std::vector<std::byte>;
using View = std::span<const std::byte>;

inline View view(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Thrown for bytes that are not a valid message. Callers that read connections catch it; users never see it.
class BadMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Appends fields to a message, little-endian.
class Writer {
 public:
  Writer& u32(std::uint32_t value) { return number(value, 4); }
  Writer& u64(std::uint64_t value) { return number(value, 8); }
  /// Appends the length, then the contents.
  Writer& bytes(View value);
  Writer& text(std::string_view value) { return bytes(view(value)); }
  const Bytes& result() const { return bytes_; }

 private:
  Writer& number(std::uint64_t value, int size);

  Bytes bytes_;
};

/// Throws BadMessage if the fields do not fit the bytes that are there.
class Reader {
 public:
  explicit Reader(View bytes) : left_(bytes) {}
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  View bytes();
  std::string text();
  bool is_at_end() const { return left_.empty(); }
  /// Throws BadMessage if bytes are left.
  void end() const;

 private:
  std::uint64_t number(std::size_t size);
  View take(std::size_t size);

  View left_;
};

}  // namespace tandem
