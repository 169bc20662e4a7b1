#pragma once
/// The rendezvous of a world's processes, and the proof that they belong together. Any means may hand it over: a pipe,
/// a file, an environment variable, another library's broadcast.
///
///   UniqueId id = UniqueId::create();                  // one process
///   send_to_the_others(id.text());
///   CudaProcess process(id, pe, pes);                  // every process, the one above included (tandem/cuda.h)
///
/// Like NCCL's `ncclUniqueId` (NCCL user guide, "Creating a communicator"), it has 128 opaque bytes. They hold an
/// address, a port that the system chose, and a random secret of 256 bits. Anyone who reads them can join the world, so
/// hand them over where only the world's processes can read.

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

  /// Opens the rendezvous of one world on a thread of this process. The thread ends when all of the world's processes
  /// have joined and left, or when this process ends. `address` is this host's number or name, as the others reach it;
  /// the default is reachable from this host only. Processes of the same user on this host use a local socket if
  /// possible. Throws InvalidArgument, RuntimeFailure, or Timeout (the name service does not answer).
  static UniqueId create(const std::string& address = "127.0.0.1");

  /// Throws InvalidArgument for an id that is truncated, mistyped or of another version.
  static UniqueId from_bytes(std::span<const std::byte> bytes);
  /// Returns the id that `text` gave. Throws as from_bytes.
  static UniqueId from_text(std::string_view text);

  /// Returns the id as bytes.
  const Bytes& bytes() const { return bytes_; }
  /// Returns the id as letters, digits, '-' and '_'.
  std::string text() const;

  /// Returns whether the ids are equal.
  bool operator==(const UniqueId&) const = default;

 private:
  UniqueId() = default;
  Bytes bytes_{};
};

}  // namespace tandem
