/// Grouped messages on CPU PEs in real time: as packets, through staging and of each PE to itself.

#include <gtest/gtest.h>

#include <vector>

#include "support/host_pes.h"
#include "tandem/send_recv.h"

namespace tandem {
namespace {

constexpr int kPes = 3, kRuns = 50;
/// Stripes of the first two go as packets, those of the last through staging in several chunks.
constexpr Size kSizes[] = {1, 100, 5000};

std::byte value(int run, int from, int to, Size i) {
  return static_cast<std::byte>((run * 7 + from * 3 + to + i) % 251);
}

void exchange(World& world, Size packet_bytes) {
  SendRecvOptions options;
  options.lanes = 3;
  options.slots = 2;
  options.slot_bytes = 512;
  options.packet_bytes = packet_bytes;
  SendRecvGroup group(world, options);
  Stream stream = world.make_stream("main");
  const int me = world.pe();
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::vector<std::byte>> out, in;
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int pe = 0; pe < kPes; ++pe)
      for (const Size bytes : kSizes) {
        auto& data = out.emplace_back(bytes);
        for (Size i = 0; i < bytes; ++i) data[static_cast<std::size_t>(i)] = value(run, me, pe, i);
        in.emplace_back(bytes);
        sends.push_back({pe, out.back().data(), bytes});
        receives.push_back({pe, in.back().data(), bytes});
      }
    group.run(stream, sends, receives);
    stream.synchronize();
    Size wrong = 0;
    for (std::size_t k = 0; k < in.size(); ++k)
      for (std::size_t i = 0; i < in[k].size(); ++i)
        wrong += in[k][i] != value(run, static_cast<int>(k / std::size(kSizes)), me, static_cast<Size>(i)) ? 1 : 0;
    EXPECT_EQ(wrong, 0) << "PE " << me << " in run " << run;
  }
  group.check(stream);
}

TEST(HostMessages, GoAsPacketsAndThroughStaging) {
  for (const Size packet_bytes : {0, 64})
    test::HostPes(kPes, {.timeout_s = 30, .arrival_timeout_s = 30}).run([&](World& world) {
      exchange(world, packet_bytes);
    });
}

}  // namespace
}  // namespace tandem
