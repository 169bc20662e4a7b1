#pragma once
/// Messages as they travel: fields, and authenticated frames around them.
///
/// A frame is magic, kind, number, length (4, 4, 8, 4 bytes, little-endian), the payload, and a code over all of that
/// under the connection's key. Frames of one direction are numbered from 0, so that none can be left out, repeated or
/// taken from another connection.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bootstrap/protocol/seal.h"

namespace tandem::bootstrap {

/// The bytes that arrived are no message of this world. Caught where connections are read.
class BadMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Writer {
 public:
  Writer& u32(std::uint32_t value) { return number(value, 4); }
  Writer& u64(std::uint64_t value) { return number(value, 8); }
  /// Length, then contents.
  Writer& bytes(View value);
  Writer& text(std::string_view value) { return bytes(view(value)); }
  const Bytes& result() const { return bytes_; }

 private:
  Writer& number(std::uint64_t value, int size);

  Bytes bytes_;
};

/// Throws BadMessage where the fields do not fit what is there.
class Reader {
 public:
  explicit Reader(View bytes) : left_(bytes) {}
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  View bytes();
  std::string text();
  /// Nothing may follow.
  void end() const;

 private:
  std::uint64_t number(std::size_t size);
  View take(std::size_t size);

  View left_;
};

enum class Kind : std::uint32_t {
  kHello = 1,   ///< to the host: nonce
  kChallenge,   ///< from the host: nonce
  kJoin,        ///< to the host: rank, size
  kWelcome,     ///< from the host
  kContribute,  ///< to the host: a part of an all-gather
  kResult,      ///< from the host: all parts
  kFailed,      ///< either way: the world is over; error's kind, text
  kLeave,       ///< to the host
};

struct Frame {
  Kind kind{};
  Bytes payload;
};

constexpr std::size_t kFrameHeader = 20;
constexpr std::size_t kFrameOverhead = kFrameHeader + sizeof(Mac);

/// Makes the frames of one direction.
class FrameWriter {
 public:
  explicit FrameWriter(const Key& key) : key_(key) {}
  void set_key(const Key& key) { key_ = key; }
  Bytes frame(Kind kind, View payload);

 private:
  Key key_;
  std::uint64_t number_ = 0;
};

/// Takes the bytes of one direction as they come.
class FrameReader {
 public:
  FrameReader(const Key& key, std::size_t most_payload) : key_(key), most_payload_(most_payload) {}
  void set_key(const Key& key, std::size_t most_payload) {
    key_ = key;
    most_payload_ = most_payload;
  }
  void set_limit(std::size_t most_payload) { most_payload_ = most_payload; }
  void feed(View bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }
  /// The next whole frame. Throws BadMessage as soon as what is there cannot become one.
  std::optional<Frame> next();

 private:
  Key key_;
  std::size_t most_payload_;
  std::uint64_t number_ = 0;
  Bytes buffer_;
};

}  // namespace tandem::bootstrap
