// Packet staging, warp by warp. The simulator's block is one actor, so its checker cannot delay one warp of a block
// while another continues. Here each warp of each PE is an actor. The order between them follows from program order,
// packets, barriers of the block and ends of launches only. Every schedule keeps that order.
#include "collectives/steps/packet_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "tandem/impl/config.h"

namespace tandem::kernels {
namespace {

constexpr Size kWarpShare = 16;  // elements of a fragment that a warp moves
constexpr int kWarps = 3;
constexpr Size kStep = kWarps * kWarpShare;
constexpr int kSlots = static_cast<int>(PacketStaging<LLPacket>::kSlots);

struct Step {
  enum Kind { kSend, kReceive, kMeet, kEnd };
  Kind kind;
  Epoch round = 0;
};
using Steps = std::vector<Step>;

/// The parts of a block that PacketRounds uses.
struct Block {
  int blocks = 1;
  int number = 0;
  Size fragment = kStep;
  Epoch* rounds = nullptr;
  Steps* steps = nullptr;

  int index() const { return number; }
  int count() const { return blocks; }
  static int num_pes() { return 2; }
  template <class T>
  Tiles tiles(Range range) const {
    return {range, fragment};
  }
  Epoch next_epoch(Epochs, Epoch count) const {
    *rounds += count;
    return *rounds - count + 1;
  }
  void sync() const { steps->push_back({Step::kMeet}); }
};

/// Returns the steps of a warp in calls of so many elements.
Steps steps_of_warp(const std::vector<Size>& calls, int warp) {
  Steps steps;
  Epoch last = 0;
  for (const Size count : calls) {
    Block block{.rounds = &last, .steps = &steps};
    PacketStaging<LLPacket> staging;
    staging.bytes = kStep;
    const PacketRounds<LLPacket, std::byte> rounds(block, staging, count);
    const auto step = [&](Step::Kind kind) {
      return [&rounds, &steps, warp, kind](Size i) {
        if (rounds.chunk(i).size() > warp * kWarpShare) steps.push_back({kind, rounds.round(i)});
      };
    };
    rounds.exchange(block, step(Step::kSend), step(Step::kReceive));
    steps.push_back({Step::kEnd});
  }
  return steps;
}

/// Two PEs that send each other packets in some calls. For each step, how many steps of every warp are known to be
/// behind it.
class Exchange {
 public:
  explicit Exchange(const std::vector<Size>& calls) {
    for (int actor = 0; actor < 2 * kWarps; ++actor)
      warps_.push_back({steps_of_warp(calls, actor % kWarps), 0, Known(2 * kWarps)});
    for (bool moved = true; moved;) {
      moved = false;
      for (int pe = 0; pe < 2; ++pe) moved |= meet(pe);
      for (int actor = 0; actor < 2 * kWarps; ++actor) moved |= advance(actor);
    }
  }

  bool is_done() const {
    return std::all_of(warps_.begin(), warps_.end(), [](const Warp& warp) { return warp.at == warp.steps.size(); });
  }
  /// Packets written over others that their reader need not have read.
  int lost() const { return lost_; }

 private:
  using Known = std::vector<std::size_t>;
  struct Warp {
    Steps steps;
    std::size_t at;
    Known known;
  };
  static void join(Known& to, const Known& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
  }

  /// Sends and receives of a warp, as far as they go.
  bool advance(int actor) {
    Warp& warp = warps_[static_cast<std::size_t>(actor)];
    const int peer = (actor + kWarps) % (2 * kWarps);
    bool moved = false;
    for (; warp.at < warp.steps.size(); ++warp.at, moved = true) {
      const Step& step = warp.steps[warp.at];
      if (step.kind == Step::kMeet || step.kind == Step::kEnd) break;
      if (step.kind == Step::kSend) {
        lost_ += is_read(warp, peer, step.round) ? 0 : 1;
        sent_[{actor, step.round}] = warp.known;
      } else {
        const auto packets = sent_.find({peer, step.round});
        if (packets == sent_.end()) break;
        join(warp.known, packets->second);
      }
      warp.known[static_cast<std::size_t>(actor)] = warp.at + 1;
    }
    return moved;
  }
  /// Whether `warp` knows that `peer` has read what lay in the slot before.
  bool is_read(const Warp& warp, int peer, Epoch round) const {
    const Steps& theirs = warps_[static_cast<std::size_t>(peer)].steps;
    for (std::size_t i = 0; i < theirs.size(); ++i)
      if (theirs[i].kind == Step::kReceive && theirs[i].round < round && theirs[i].round % kSlots == round % kSlots &&
          warp.known[static_cast<std::size_t>(peer)] <= i)
        return false;
    return true;
  }
  /// A barrier of a PE's warps, or the end of its launch.
  bool meet(int pe) {
    const auto first = warps_.begin() + pe * kWarps;
    const auto at_barrier = [](const Warp& warp) {
      return warp.at < warp.steps.size() && warp.steps[warp.at].kind >= Step::kMeet;
    };
    if (!std::all_of(first, first + kWarps, at_barrier)) return false;
    Known all(2 * kWarps);
    for (auto warp = first; warp != first + kWarps; ++warp) join(all, warp->known);
    for (auto warp = first; warp != first + kWarps; ++warp) {
      warp->known = all;
      ++warp->at;
    }
    return true;
  }

  std::vector<Warp> warps_;
  std::map<std::pair<int, Epoch>, Known> sent_;
  int lost_ = 0;
};

TEST(PacketRounds, NoWarpLosesPacketsHoweverLongItIsHeldUp) {
  // No elements, less than a warp's, ends within each warp, full rounds; up to five rounds a call.
  std::vector<Size> sizes{0, 1};
  for (Size round = 0; round < 5; ++round)
    for (const Size more : {kWarpShare, 2 * kWarpShare, kStep}) sizes.push_back(round * kStep + more);
  for (const Size first : sizes)
    for (const Size second : sizes)
      for (const Size third : sizes) {
        const Exchange exchange({first, second, third});
        ASSERT_TRUE(exchange.is_done());
        ASSERT_EQ(exchange.lost(), 0) << first << ", " << second << ", " << third << " elements";
      }
}

/// As plans call it.
struct SmallPlan {
  int blocks_of_plan;
  int blocks() const { return blocks_of_plan; }
  static int pes() { return 2; }
  template <class T>
  static Symm<T> symmetric(Size, const char*) {
    return {};
  }
  static Epochs epochs() { return {}; }
};

TEST(PacketStaging, APartOfASmallCallIsOneRound) {
  for (const int blocks : {1, 2, 3, 4, 8})
    for (const Size bytes : {1, 8, 60, 64, 100, 512, 1000, 4096}) {
      SmallPlan plan{blocks};
      const auto staging = PacketStaging<LLPacket>::of(plan, bytes);
      for (int block = 0; block < blocks; ++block) {
        Epoch last = 0;
        Block own{.blocks = blocks, .number = block, .fragment = 8192, .rounds = &last};
        // Elements of eight bytes are shared out by sixteen as well.
        const PacketRounds<LLPacket, std::byte> of_bytes(own, staging, bytes);
        EXPECT_LE(of_bytes.count(), 1) << bytes << " bytes by " << blocks << " blocks";
        own.fragment = 1024;
        const PacketRounds<LLPacket, double> of_doubles(own, staging, bytes / 8);
        EXPECT_LE(of_doubles.count(), 1) << bytes / 8 << " doubles by " << blocks << " blocks";
      }
    }
}

}  // namespace
}  // namespace tandem::kernels
