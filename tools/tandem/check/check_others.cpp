// The team barrier and grouped send and receive under `tandem check`.
#include <fmt/format.h>

#include <cstring>

#include "check/run_once.h"
#include "tandem/barrier.h"
#include "tandem/error.h"
#include "tandem/send_recv.h"
#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {
namespace {

constexpr int kOtherCalls = 3;

/// Every PE writes a word, synchronises, and reads the words of the others.
struct MeetAndRead {
  struct Args {
    Symm<std::uint32_t> mine;
    Symm<std::uint32_t> theirs;  // [PE]
    TeamBarrier barrier;
    std::uint32_t value;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    const Size at = block.index();
    block.store_scalar(a.mine.local() + at, a.value + static_cast<std::uint32_t>(block.pe()));
    for (int pe : block.peers_from_self())
      block.put_nbi(a.theirs + (at * block.num_pes() + block.pe()), a.mine.local() + at, 1, pe);
    barrier_all(block, a.barrier);
    for (int pe : block.peers_from_self()) {
      const std::uint32_t got = block.load_scalar(a.theirs.local() + at * block.num_pes() + pe);
      if (got != a.value + static_cast<std::uint32_t>(pe))
        throw checker::WrongResult(block.pe(), fmt::format("PE {} has {} of PE {}", block.pe(), got, pe));
    }
    team_sync(block, a.barrier);
  }
};

class BarrierProgram final : public CheckProgram {
 public:
  void run(World& world) const override {
    constexpr int blocks = 2;
    const auto mine = world.heap().allocate<std::uint32_t>(blocks, "mine");
    const auto theirs = world.heap().allocate<std::uint32_t>(Size{blocks} * world.num_pes(), "theirs");
    const TeamBarrier within = make_team_barrier(world, world.team(), blocks);
    const TeamBarrier between = make_team_barrier(world, world.team(), 1);
    Stream stream = world.make_stream("main");
    std::vector<std::uint32_t> host(static_cast<std::size_t>(blocks) * static_cast<std::size_t>(world.num_pes()));
    for (std::uint32_t call = 1; call <= kOtherCalls; ++call) {
      stream.launch<MeetAndRead>({blocks, 64}, {mine, theirs, within, 100 * call});
      barrier_on(stream, between, world.team());
      stream.synchronize();
      world.copy_out(host.data(), theirs.local(), static_cast<Size>(host.size() * sizeof(host[0])));
      barrier_on(stream, between, world.team());
    }
    stream.synchronize();
  }
};

/// Every PE sends three messages to every PE, also to itself, the first of which needs several chunks. With
/// `packet_bytes` of 48 the others go as packets. They are as many as there are slots.
class GroupProgram final : public CheckProgram {
 public:
  explicit GroupProgram(Size packet_bytes) : packet_bytes_(packet_bytes) {}

  void run(World& world) const override {
    const int n = world.num_pes();
    const int me = world.pe();
    SendRecvOptions options;
    options.lanes = 2;
    options.slots = 2;
    options.slot_bytes = 32;
    options.packet_bytes = packet_bytes_;
    SendRecvGroup group(world, options);
    const Size row = 200;
    auto* const out = world.heap().allocate_local<std::byte>(row * n, "out");
    auto* const in = world.heap().allocate_local<std::byte>(row * n, "in");
    Stream stream = world.make_stream("main");
    std::vector<std::byte> host(static_cast<std::size_t>(row * n));
    for (int call = 0; call < kOtherCalls; ++call) {
      std::vector<Send> sends;
      std::vector<Receive> receives;
      for (int pe = 0; pe < n; ++pe) {
        std::memset(host.data() + pe * row, 16 * call + 4 * me + pe, static_cast<std::size_t>(row));
        Size at = pe * row;
        for (const Size bytes : {130, 40, 30}) {
          sends.push_back({pe, out + at, bytes});
          receives.push_back({pe, in + at, bytes});
          at += bytes;
        }
      }
      world.copy_in(out, host.data(), row * n);
      group.run(stream, sends, receives);
      group.check(stream);
      world.copy_out(host.data(), in, row * n);
      for (int pe = 0; pe < n; ++pe)
        for (Size i = 0; i < row; ++i)
          if (host[static_cast<std::size_t>(pe * row + i)] != static_cast<std::byte>(16 * call + 4 * pe + me))
            throw checker::WrongResult(me, fmt::format("call {}: PE {} has a wrong byte of PE {}", call + 1, me, pe));
    }
  }

 private:
  Size packet_bytes_;
};

}  // namespace

void add_other_cases(std::vector<CheckCase>& cases, int pes) {
  for (const int pes_per_node : node_sizes(pes)) {
    CheckCase one;
    one.machine = machine_for(pes);
    one.pes = pes;
    one.pes_per_node = pes_per_node;
    one.op = "barrier";
    one.algorithm = "dissemination";
    one.make = [] { return std::make_unique<BarrierProgram>(); };
    cases.push_back(one);
    one.op = "send_recv_group";
    one.algorithm = "credits";
    one.make = [] { return std::make_unique<GroupProgram>(0); };
    cases.push_back(one);
    one.variant = "packets";
    one.make = [] { return std::make_unique<GroupProgram>(48); };
    cases.push_back(std::move(one));
  }
}

}  // namespace tandem::cli
