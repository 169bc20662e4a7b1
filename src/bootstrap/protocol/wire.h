#pragma once
/// The wire format of messages: fields, and authenticated frames around them.
///
/// A frame is magic, kind, number, length (4, 4, 8, 4 bytes, little-endian), the payload, and a MAC over all of them
/// under the connection's key. Frames of one direction are numbered from 0, so none can be dropped, replayed or copied
/// from another connection.

#include <cstdint>
#include <optional>

#include "base/serial.h"
#include "bootstrap/protocol/mac.h"

namespace tandem::bootstrap {

enum class Kind : std::uint32_t {
  kHello = 1,   ///< to the host: nonce
  kChallenge,   ///< from the host: nonce
  kJoin,        ///< to the host: PE, size, name of its host
  kWelcome,     ///< from the host
  kContribute,  ///< to the host: a part of an all-gather
  kResult,      ///< from the host: all parts
  kFailed,      ///< both directions: the world is over; kind and text of the error
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

/// Takes the bytes of one direction as they arrive.
class FrameReader {
 public:
  FrameReader(const Key& key, std::size_t most_payload) : key_(key), most_payload_(most_payload) {}
  void set_key(const Key& key, std::size_t most_payload) {
    key_ = key;
    most_payload_ = most_payload;
  }
  void set_limit(std::size_t most_payload) { most_payload_ = most_payload; }
  void feed(View bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }
  /// Returns the next complete frame. Throws BadMessage as soon as the bytes cannot become a frame.
  std::optional<Frame> next();

 private:
  Key key_;
  std::size_t most_payload_;
  std::uint64_t number_ = 0;
  Bytes buffer_;
};

}  // namespace tandem::bootstrap
