// The example of docs/how-to/add_a_collective.md: its kernel, its entry in the registry, and its test.

#include <string>
#include <vector>

#include "collectives/added/all_gather_pull.h"
#include "collectives/plan/plan.h"
#include "tandem/advanced/check_matcher.h"

namespace tandem::kernels {
namespace {

// listing: entry
constexpr Collective kSelf = Collective::kAllGather;

const Algorithm kPull{{kSelf, "pull", "every PE's SMs read from all peers", true, false, PeerAccess::kBoth},
                      make_byte_plan<kSelf, AllGatherPull>};
// end of listing

// listing: program
/// Three calls of different sizes. Returns the first error of a result, or nothing.
std::string gather(World& world, bool in_place) {
  constexpr Size kMost = 1000;
  const int n = world.num_pes();
  const auto plan = kPull.make(world, {.type = DType::kU8, .max_count = kMost, .algorithm = "pull"}, world.team());
  const auto in = world.heap().allocate<std::byte>(kMost, "in");
  const auto out = world.heap().allocate<std::byte>(kMost * n, "out");
  Stream stream = world.make_stream("main");
  for (const Size count : {kMost, Size{1}, Size{333}}) {
    const Symm<std::byte> from = in_place ? out + world.pe() * count : in;
    const std::vector<std::byte> mine(static_cast<std::size_t>(count), static_cast<std::byte>(count + world.pe()));
    world.copy_in(from.local(), mine.data(), count);
    plan->run(stream, from, out, count);
    stream.synchronize();
    std::vector<std::byte> all(static_cast<std::size_t>(count * n));
    world.copy_out(all.data(), out.local(), count * n);
    for (Size i = 0; i < count * n; ++i)
      if (all[static_cast<std::size_t>(i)] != static_cast<std::byte>(count + i / count))
        return "element " + std::to_string(i) + " of a call with count " + std::to_string(count);
  }
  return "";
}
// end of listing

// listing: test
TEST(AddedCollective, GathersWithoutARaceUnderAnySchedule) {
  for (const int pes : {1, 2, 3, 4})
    for (const bool in_place : {false, true})
      EXPECT_THAT(check(
                      [=](World& world) {
                        if (const std::string wrong = gather(world, in_place); !wrong.empty()) throw CheckFailed(wrong);
                      },
                      {.pes = pes, .schedules = 20}),
                  is_clean());
}
// end of listing

}  // namespace
}  // namespace tandem::kernels
