#pragma once
// The host program around ShiftAdd, the same for the simulator and for GPUs.

#include <vector>

#include "shift_add.h"

#include "tandem/world.h"

/// Fills each PE's vector with the number of the PE, calls the kernel three times, and returns the count of wrong sums.
inline tandem::Size count_wrong_sums(tandem::World& world) {
  constexpr tandem::Size kCount = 100'000;
  constexpr int kBlocks = 16;
  // listing: calls
  const tandem::Size bytes = kCount * tandem::Size{sizeof(float)};
  auto& heap = world.heap();
  const ShiftAdd::Args args{heap.allocate<float>(kCount, "x"), heap.allocate<float>(kCount, "received"),
                            heap.signals(kBlocks, "ready"),    heap.signals(kBlocks, "arrived"),
                            heap.epochs(kBlocks, "epochs"),    kCount};
  std::vector<float> x(kCount, static_cast<float>(world.pe()));
  world.copy_in(args.x.local(), x.data(), bytes);

  auto stream = world.make_stream("main");
  for (int call = 0; call < 3; ++call) stream.launch<ShiftAdd>({.blocks = kBlocks}, args);
  stream.synchronize();
  // end of listing

  // The same three calls on the numbers of the PEs.
  const auto n = static_cast<std::size_t>(world.num_pes());
  std::vector<float> expected(n);
  for (std::size_t pe = 0; pe < n; ++pe) expected[pe] = static_cast<float>(pe);
  for (int call = 0; call < 3; ++call) {
    const std::vector<float> before = expected;
    for (std::size_t pe = 0; pe < n; ++pe) expected[pe] = before[pe] + before[(pe + n - 1) % n];
  }
  world.copy_out(x.data(), args.x.local(), bytes);
  tandem::Size wrong = 0;
  for (const float sum : x) wrong += sum != expected[static_cast<std::size_t>(world.pe())] ? 1 : 0;
  return wrong;
}
