#pragma once
/// Messages between PEs: a header of 64 bytes, and data.
///
/// A header carries a code under a key of the ordered pair of PEs, and the message's number. So no other process can
/// make, change or repeat a message. With TANDEM_SEAL=all the code covers the data too, which is encrypted then.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/serial.h"
#include "bootstrap/protocol/mac.h"
#include "tandem/signal.h"

namespace tandem::wire {

enum class Kind : std::uint8_t {
  kPut,      ///< data for `offset`, then `value` for `word` if `has_word`
  kGet,      ///< asks for `bytes` bytes at `offset`
  kGot,      ///< the data that was asked for
  kFlush,    ///< asks whether all messages before it have been carried out
  kFlushed,  ///< they have
  kBeat      ///< the sender lives; `value` is the look of its Heartbeat, the data its news
};

/// Returns whether the `bytes` of a header of this kind follow it.
constexpr bool carries_data(Kind kind) { return kind == Kind::kPut || kind == Kind::kGot || kind == Kind::kBeat; }

struct Header {
  Kind kind = Kind::kPut;
  SignalOp op = SignalOp::kSet;
  bool has_word = false;
  bool precedes_word = false;  ///< of a put: a later message of the same put has its word
  int from = 0;
  int to = 0;
  std::uint64_t number = 0;  ///< of the messages from this PE to that one: 1, 2, ...
  Size offset = 0;           ///< in the receiver's part of the symmetric memory
  Size bytes = 0;
  Size word = 0;            ///< offset of the signal's word
  std::uint64_t value = 0;  ///< of the signal; for gets and flushes a number that the answer repeats
};

constexpr Size kHeaderBytes = 64;

/// Whether the data is encrypted.
enum class Seal { kHeaders, kAll };
/// Returns the choice of TANDEM_SEAL ("headers", "all"); kHeaders without it. Throws InvalidArgument.
Seal seal_of_environment();

/// The keys of one PE.
class Keys {
 public:
  /// `secret` is known to the PEs of the world alone.
  Keys(const bootstrap::Key& secret, Seal seal, int pes, int me);

  /// Returns the sealed header of a message to `header.to`. With kAll `data` is encrypted in place.
  std::array<std::byte, kHeaderBytes> seal(const Header& header, std::span<std::byte> data) const;
  /// Returns the header of a message for this PE; nothing if it is no such message. With kAll the data is decrypted to
  /// `plain`, else `plain` is empty and the data is that of the message.
  std::optional<Header> open(View message, Bytes& plain) const;
  Seal seal_choice() const { return seal_; }

 private:
  Seal seal_;
  int me_;
  std::vector<bootstrap::Key> to_;    // by PE
  std::vector<bootstrap::Key> from_;  // by PE
};

}  // namespace tandem::wire
