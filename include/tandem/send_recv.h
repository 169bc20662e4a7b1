#pragma once
/// Grouped send and receive between arbitrary pairs of PEs, in one launch.
///
///   SendRecvGroup group(world);
///   group.run(stream, {{.peer = 3, .data = a, .bytes = 100}}, {{.peer = 1, .data = b, .bytes = 64}});
///   group.check(stream);
///
/// Messages from one PE to another are matched in the order of the two lists, as MPI and NCCL match them. Within one
/// run all go on side by side: no order of the lists can deadlock, as long as every send has its receive in the same
/// run. Data may be any memory of this PE: peers write to staging that the group owns, never to a user's buffer.

#include <memory>
#include <vector>

#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// Bytes for PE `peer` of the team; they must stay as they are until the run is done.
struct Send {
  int peer = 0;
  const void* data = nullptr;
  Size bytes = 0;
};

/// Where to put the bytes that PE `peer` sends.
struct Receive {
  int peer = 0;
  void* data = nullptr;
  Size bytes = 0;
};

struct SendRecvOptions {
  /// Blocks that share the messages of one pair, each with staging of its own; 0: as many as suit the size of the team.
  int lanes = 0;
  /// Chunks that a lane may have under way: sent, and not yet taken by the receiver.
  int slots = 4;
  /// Largest chunk, a multiple of 16 and at most 1 MiB. Staging takes num_pes * lanes * slots * slot_bytes bytes on
  /// every PE.
  Size slot_bytes = Size{64} << 10;
};

class SendRecvGroup {
 public:
  /// Most messages (sends and receives together) of one PE in one run: they travel as arguments of the launch.
  static constexpr int kMostMessages = 512;

  /// Collective over the world (memory is allocated on the symmetric heap); `team` sends and receives (default: the
  /// world). Throws InvalidArgument naming the option that is out of range.
  explicit SendRecvGroup(World& world, const SendRecvOptions& options = {});
  SendRecvGroup(World& world, const SendRecvOptions& options, const Team& team);
  SendRecvGroup(SendRecvGroup&&) noexcept;
  SendRecvGroup& operator=(SendRecvGroup&&) noexcept;
  ~SendRecvGroup();

  /// Enqueues one launch. Collective: all PEs of the team, in the same order; a PE without messages gives empty lists.
  /// Throws InvalidArgument for a peer outside of the team, a negative size, missing data or too many messages.
  void run(Stream& stream, const std::vector<Send>& sends, const std::vector<Receive>& receives);

  /// Waits for the stream. Throws CheckFailed where a message's size was not what its receiver gave in any run so far,
  /// naming both PEs. What fits was received: the first bytes that were sent, as many as both sizes allow; others of
  /// the receiver's are as they were. A receive without a send never ends; a send without one is the next run's.
  void check(Stream& stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
