// Calls of the C API that go well, memory of both kinds, pieces of staging memory, every collective.
#include <gtest/gtest.h>

#include <vector>

#include "c_api/simulated/memory.h"

namespace tandem::test {
namespace {

constexpr int kPes = 3;

/// Words of every PE to every other, in any kind of memory; 10,007 words take several pieces of staging memory.
void check_collectives(CPeer& peer, bool symmetric_in, bool symmetric_out, size_t count) {
  const auto n = static_cast<size_t>(peer.n);
  const int root = 1;
  const auto u32 = TANDEM_U32;
  std::vector<Words> from_all, for_me, from_me;
  for (int pe = 0; pe < peer.n; ++pe) {
    from_all.push_back(words(pe, 0, count));
    for_me.push_back(words(pe, peer.pe, count));
    from_me.push_back(words(peer.pe, pe, count));
  }
  Words sum(count);
  for (const Words& part : from_all)
    for (size_t i = 0; i < count; ++i) sum[i] += part[i];
  const Memory one(peer, symmetric_in, from_all[static_cast<size_t>(peer.pe)]);
  const Memory each(peer, symmetric_in, joined(from_me));
  const Memory got(peer, symmetric_out, Words(count));
  const Memory all(peer, symmetric_out, Words(n * count));
  const auto well = [](tandem_status status) { EXPECT_EQ(unlike(status, TANDEM_SUCCESS), ""); };
  void* const s = peer.stream;

  well(tandem_all_reduce(peer.world, one.at(), got.at(), count, u32, TANDEM_SUM, s));
  EXPECT_EQ(got.contents(), sum);
  well(tandem_all_gather(peer.world, one.at(), all.at(), count, u32, s));
  EXPECT_EQ(all.contents(), joined(from_all));
  well(tandem_all_to_all(peer.world, each.at(), all.at(), count, u32, s));
  EXPECT_EQ(all.contents(), joined(for_me));
  well(tandem_broadcast(peer.world, one.at(), got.at(), count, u32, root, s));
  EXPECT_EQ(got.contents(), words(root, 0, count));
  well(tandem_gather(peer.world, one.at(), all.at(), count, u32, root, s));
  if (peer.pe == root) {
    EXPECT_EQ(all.contents(), joined(from_all));
  }
  well(tandem_scatter(peer.world, each.at(), got.at(), count, u32, root, s));
  EXPECT_EQ(got.contents(), words(root, peer.pe, count));
  well(tandem_reduce(peer.world, one.at(), got.at(), count, u32, TANDEM_SUM, root, s));
  if (peer.pe == root) {
    EXPECT_EQ(got.contents(), sum);
  }
  well(tandem_reduce_scatter(peer.world, all.at(), got.at(), count, u32, TANDEM_MAX, s));
  well(tandem_synchronize(peer.world, s));
}

TEST(Calls, Collectives) {
  for (const bool in : {true, false})
    for (const bool out : {true, false})
      run_in_c(kPes, [=](CPeer& peer) {
        for (const size_t count : {size_t{0}, size_t{1}, size_t{10'007}}) check_collectives(peer, in, out, count);
      });
}

TEST(Calls, PartsThatDiffer) {
  run_in_c(kPes, [](CPeer& peer) {
    const auto size = [](int from, int to) { return static_cast<size_t>((from * 5 + to * 3) % 7) * 101; };
    std::vector<size_t> out_counts, out_offsets, in_counts, in_offsets;
    Words sent, wanted;
    const auto add = [](std::vector<size_t>& counts, std::vector<size_t>& offsets, Words& all, const Words& part) {
      counts.push_back(part.size());
      offsets.push_back(all.size());
      all.insert(all.end(), part.begin(), part.end());
    };
    for (int pe = 0; pe < peer.n; ++pe) {
      add(out_counts, out_offsets, sent, words(peer.pe, pe, size(peer.pe, pe)));
      add(in_counts, in_offsets, wanted, words(pe, peer.pe, size(pe, peer.pe)));
    }
    const Memory from(peer, false, sent);
    const Memory to(peer, false, Words(wanted.size()));
    EXPECT_EQ(unlike(tandem_all_to_all_v(peer.world, from.at(), out_counts.data(), out_offsets.data(), to.at(),
                                         in_counts.data(), in_offsets.data(), TANDEM_U32, peer.stream),
                     TANDEM_SUCCESS),
              "");
    EXPECT_EQ(to.contents(), wanted);
  });
}

TEST(Calls, AMessageOfAnotherSizeIsNamed) {
  run_in_c(2, [](CPeer& peer) {
    const Memory out(peer, false, words(0, 1, 60));
    const Memory in(peer, false, Words(50));
    const tandem_message to{out.at(), 60, TANDEM_U32, peer.pe};
    const tandem_message from{in.at(), 50, TANDEM_U32, peer.pe};
    EXPECT_EQ(unlike(tandem_send_recv(peer.world, &to, 1, &from, 1, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_INVALID_ARGUMENT, "another size"), "");
  });
}

TEST(Calls, AnAbortIsSeen) {
  run_in_c(1, [](CPeer& peer) {
    EXPECT_EQ(unlike(tandem_world_error(peer.world), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_world_abort(peer.world, "on purpose"), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_FAILED, "aborted: on purpose"), "");
    EXPECT_EQ(unlike(error_of(peer.world), TANDEM_FAILED, "aborted: on purpose"), "");
  });
}

}  // namespace
}  // namespace tandem::test
