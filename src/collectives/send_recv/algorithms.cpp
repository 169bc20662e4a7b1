#include "tandem/send_recv.h"

#include <algorithm>

#include "collectives/plan/copy_engine_plan.h"
#include "collectives/plan/plan.h"
#include "collectives/send_recv/ll.h"
#include "collectives/send_recv/ring.h"

namespace tandem::kernels {

namespace {

constexpr Collective kSelf = Collective::kSendRecv;

/// A group of one send and one receive on each PE.
class GroupPlan final : public CollectivePlan {
 public:
  GroupPlan(World& world, const CollectiveOptions& options, const Team& team)
      : algorithm_(options.algorithm),
        name_(plan_name(kSelf, options)),
        team_(team),
        max_count_(options.max_count),
        element_bytes_(size_of(options.type)),
        group_(world, SendRecvOptions{.blocks = options.blocks}, team) {}

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    check_call(name_, in, out, count, max_count_);
    const Size bytes = count * element_bytes_;
    group_.run(stream, {{(team_.me + 1) % team_.size, in.local(), bytes}},
               {{(team_.me + team_.size - 1) % team_.size, out.local(), bytes}});
  }

  const std::string& algorithm() const override { return algorithm_; }

 private:
  std::string algorithm_;
  std::string name_;
  Team team_;
  Size max_count_;
  Size element_bytes_;
  SendRecvGroup group_;
};

std::unique_ptr<CollectivePlan> make_group(World& world, const CollectiveOptions& options, const Team& team) {
  return std::make_unique<GroupPlan>(world, options, team);
}

}  // namespace

std::span<const Algorithm> send_recv_algorithms() {
  using enum PeerAccess;
  static const Algorithm algorithms[] = {
      {{kSelf, "ring", "every PE puts to the next one's output", false, false, kOutput},
       make_byte_plan<kSelf, SendRecvRing>},
      {{kSelf, "grouped", "through staging with credits, as any group of sends and receives", false, false, kNeither},
       make_group},
      {{kSelf, "copy_engine", "copy engines write to the next PE; no SM moves data", true, true, kOutput},
       make_copy_engine_push<kSelf, CopyPattern::kRing>},
      {{kSelf, "ll", "packets that are their own signals: small sizes", true, false, kNeither},
       make_byte_plan<kSelf, SendRecvLL>},
      {{kSelf, "ll128", "lines of packets: middle sizes", true, false, kNeither}, make_byte_plan<kSelf, SendRecvLL128>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
