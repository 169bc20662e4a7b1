// Reductions in the switch: by several PEs into one buffer, and beside loads and stores.

#include <gtest/gtest.h>

#include "check/conformance.h"
#include "tandem/advanced/check_matcher.h"

namespace tandem::check_test {

namespace {

template <class Body>
CheckResult check_with_multicast(const Body& body) {
  CheckOptions options;
  options.machine = load_machine("h200x4");
  options.machine.link.multicast = true;
  options.pes = 2;
  options.schedules = 5;
  return check(
      [&body](World& world) {
        const Env env = make_env(world);
        const std::vector<float> zeros(kN);
        world.copy_in(env.data.local(), zeros.data(), kN * Size{sizeof(float)});
        world.copy_in(env.local, zeros.data(), kN * Size{sizeof(float)});
        world.barrier();
        Stream stream = world.make_stream("main");
        stream.launch<Kernel<Body>>({1, 64}, {body, env});
        stream.synchronize();
      },
      options);
}

template <class Block>
void reduce(Block& block, const Env& e) {
  block.multimem_reduce(e.data, {0, kN}, block.template load<float>(e.local, {0, kN}), ReduceOp::kSum);
}

TEST(Multimem, ReductionsIntoOneBufferNeedNoOrder) {
  EXPECT_THAT(check_with_multicast([](auto& block, const Env& e) {
                reduce(block, e);
                block.notify_all(e.words, 1);
                block.wait_all(e.words, 1);
                read(block, e, e.data.local());
              }),
              is_clean());
}

TEST(Multimem, ALoadHasToWaitForThem) {
  EXPECT_THAT(check_with_multicast([](auto& block, const Env& e) {
                reduce(block, e);
                read(block, e, e.data.local());
              }),
              has_finding("read_before_write_is_visible"));
}

TEST(Multimem, AStoreBesideThemIsARace) {
  EXPECT_THAT(check_with_multicast([](auto& block, const Env& e) {
                if (block.pe() == 0) reduce(block, e);
                if (block.pe() == 1) write(block, e.data.local());
              }),
              has_finding("unordered_writes"));
}

}  // namespace

}  // namespace tandem::check_test
