#pragma once
/// Grouped send and receive between arbitrary pairs of PEs, in one launch.
///
///   SendRecvGroup group(world);
///   group.run(stream, {{.peer = 3, .data = a, .bytes = 100}}, {{.peer = 1, .data = b, .bytes = 64}});
///   group.check(stream);
///
/// Messages from one PE to another match in the order of the two lists, as in MPI and NCCL. All messages of a run
/// progress side by side. No order of the lists can deadlock, as long as each send has its receive in the same run.
/// Data may be any memory of this PE: peers write to staging that the group owns, never to a user's buffer.

#include <memory>
#include <optional>
#include <vector>

#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// A message to PE `peer` of the team. Its bytes must not change until the run is complete.
struct Send {
  int peer = 0;                ///< the receiver, as numbered in the team
  const void* data = nullptr;  ///< any memory of this PE
  Size bytes = 0;              ///< at least 0
};

/// The place for the message that PE `peer` sends.
struct Receive {
  int peer = 0;          ///< the sender, as numbered in the team
  void* data = nullptr;  ///< any memory of this PE
  Size bytes = 0;        ///< the size that the sender gives
};

/// Options of a group, the same on all PEs.
struct SendRecvOptions {
  /// Parts into which a message is cut, each with its own staging. A block moves two. 0 chooses by the size of the
  /// team.
  int lanes = 0;
  /// The most blocks of a launch where `lanes` is 0; 0: as many as the GPU has SMs. Each peer has at least one.
  int blocks = 0;
  /// Chunks of a lane that may be in flight: sent, and not yet consumed by the receiver.
  int slots = 3;
  /// Bytes of the largest chunk: a multiple of 16, at most 1 MiB. Staging takes (num_pes - 1) * lanes * slots *
  /// slot_bytes bytes on every PE.
  Size slot_bytes = Size{64} << 10;
  /// Parts of up to this many bytes go as packets within a node, in one trip: a multiple of 16, at most 2 KiB. 0: none
  /// do. Unset: 2 KiB on GPUs, and 0 on CPUs.
  std::optional<Size> packet_bytes = std::nullopt;
};

/// Sends and receives of any number of messages in one launch.
class SendRecvGroup {
 public:
  /// The most messages (sends and receives together) of one PE in one run. They are arguments of the launch.
  static constexpr int kMostMessages = 512;

  /// Allocates staging on the symmetric heap, so all PEs of the world call it. `team` sends and receives (default: the
  /// world). Throws InvalidArgument with the name of the option that is out of range.
  explicit SendRecvGroup(World& world, const SendRecvOptions& options = {});
  /// The same for the PEs of `team`.
  SendRecvGroup(World& world, const SendRecvOptions& options, const Team& team);
  /// Takes over the staging.
  SendRecvGroup(SendRecvGroup&&) noexcept;
  /// Takes over the staging; the own one is freed.
  SendRecvGroup& operator=(SendRecvGroup&&) noexcept;
  ~SendRecvGroup();

  /// Enqueues one launch. All PEs of the team call it in the same order; a PE without messages passes empty lists.
  /// Throws InvalidArgument for a peer outside the team, a negative size, missing data, or too many messages. Also for
  /// a message of a PE to itself whose send and receive are not in the same run.
  void run(Stream& stream, const std::vector<Send>& sends, const std::vector<Receive>& receives);

  /// Returns the blocks of a launch.
  int blocks() const;

  /// Waits for the stream. Throws CheckFailed with both PEs if a message and its receive differed in size in any run so
  /// far. In that case the receiver got the first bytes, as many as both sizes allow, and the rest of its buffer is
  /// unchanged. A receive without a send never completes; a send without a receive matches a receive of the next run.
  void check(Stream& stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
