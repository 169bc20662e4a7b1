#pragma once
/// Where the processes of a world meet, and the proof that they belong together: handed over by any means (a pipe, a
/// file, an environment variable, another library's broadcast).
///
///   UniqueId id = UniqueId::create();                  // one process
///   send_to_the_others(id.text());
///   CudaProcess process(id, pe, pes);                  // every process, the one above included (tandem/cuda.h)
///
/// As NCCL's `ncclUniqueId` (NCCL user guide, "Creating a communicator"), 128 bytes that are opaque to whoever carries
/// them. They hold an address, a port that the system chose, and a random secret of 256 bits: whoever has read them can
/// join the world, so hand them over by what only the world's processes read.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

/// The id of a world of processes: 128 bytes.
class UniqueId {
 public:
  /// The size of an id.
  static constexpr std::size_t kBytes = 128;
  /// An id as bytes.
  using Bytes = std::array<std::byte, kBytes>;

  /// Opens the rendezvous of one world in this process, on a thread of its own that ends when all of the world's
  /// processes have come and gone (or this process ends). `address` is this host's, as the others reach it: a number
  /// or a name; the default is reached from this host alone. Processes of the same user on this host use a local socket
  /// instead where they can. Throws InvalidArgument, RuntimeFailure, Timeout (the name service does not answer).
  static UniqueId create(const std::string& address = "127.0.0.1");

  /// Throws InvalidArgument for what `bytes` and `text` did not give (truncated, mistyped, of another version).
  static UniqueId from_bytes(std::span<const std::byte> bytes);
  /// Returns the id that `text` gave. Throws as from_bytes.
  static UniqueId from_text(std::string_view text);

  /// Returns the id as bytes.
  const Bytes& bytes() const { return bytes_; }
  /// Letters, digits, '-' and '_'.
  std::string text() const;

  /// Returns whether the ids are equal.
  bool operator==(const UniqueId&) const = default;

 private:
  UniqueId() = default;
  Bytes bytes_{};
};

}  // namespace tandem
