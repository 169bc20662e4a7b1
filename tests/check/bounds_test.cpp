// Accesses that do not lie within one buffer.

#include <gtest/gtest.h>

#include "check/conformance.h"
#include "tandem/advanced/check_matcher.h"
#include "tandem/error.h"

namespace tandem::check_test {

namespace {

template <class Body>
CheckResult check_body(const Body& body) {
  CheckOptions options;
  options.pes = 2;
  options.schedules = 1;
  return check(
      [&body](World& world) {
        const Env env = make_env(world);
        Stream stream = world.make_stream("main");
        stream.launch<Kernel<Body>>({1, 64}, {body, env});
        stream.synchronize();
      },
      options);
}

TEST(Bounds, ALoadBeyondItsBufferIsNamed) {
  const CheckResult result = check_body([](auto& block, const Env& e) {
    block.template load<float>(e.data.local(), Range{Env::kCount - 1, Env::kCount + 1});
  });
  ASSERT_THAT(result, has_finding("out_of_bounds"));
  const Finding& finding = result.findings.front();
  EXPECT_EQ(finding.sites.front().operation, "load");
  EXPECT_EQ(finding.buffer.substr(0, 13), "data[31, 33) ") << finding.buffer;
}

TEST(Bounds, SoIsAPutIntoASmallerBuffer) {
  EXPECT_THAT(check_body([](auto& block, const Env& e) {
                if (block.pe() == 0) block.put(e.data + 1, e.other.local(), Env::kCount, 1);
              }),
              has_finding("out_of_bounds"));
}

TEST(Bounds, SoIsASignalOfAGridThatIsLargerThanItsWords) {
  EXPECT_THAT(check_body([](auto& block, const Env& e) { block.notify(e.words + 4096, 1, block.pe()); }),
              has_finding("out_of_bounds"));
}

/// Programs that touch what lies beside a buffer, and how the finding names the place.
template <class Body>
std::string place_of(const Body& body) {
  const CheckResult result = check_body(body);
  for (const Finding& finding : result.findings)
    if (finding.kind == "out_of_bounds") return finding.buffer + "; " + finding.missing;
  return result.text();
}

TEST(Bounds, WhatLiesBesideABufferIsNoOther) {
  using ::testing::HasSubstr;
  constexpr Range kOne{0, 1};
  const auto load = [=](auto& block, const float* from) { block.template load<float>(from, kOne); };
  EXPECT_THAT(place_of([=](auto& block, const Env& e) { load(block, e.data.local() - 1); }),
              HasSubstr("data - 4 bytes on PE "));
  EXPECT_THAT(place_of([=](auto& block, const Env& e) { load(block, e.other.local() + Env::kCount); }),
              HasSubstr("other + 128 of 128 bytes on PE "));
  EXPECT_THAT(place_of([=](auto& block, const Env& e) { load(block, e.result + Env::kCount + 3); }),
              HasSubstr("result + 140 of 128 bytes on PE "));
  EXPECT_THAT(place_of([](auto& block, const Env& e) { block.notify(e.words + 16, 1, block.pe()); }),
              HasSubstr("words + 128 of 128 bytes on PE "));
  EXPECT_THAT(place_of([](auto& block, const Env& e) {
                block.template load<float>(e.data.local(), Range{Env::kCount - 1, Env::kCount + 1});
              }),
              HasSubstr("8 bytes do not lie within one buffer of that PE (the buffer has 4 bytes from there)"));
}

TEST(Bounds, AllWordsOfAWaitAreOneBuffers) {
  EXPECT_THAT(place_of([](auto& block, const Env& e) { block.wait(e.words + 10, 8, 0); }),
              ::testing::HasSubstr("words[10, 18) on PE "));
}

TEST(Bounds, AGridHasAsManySlotsAsItsWords) {
  EXPECT_THAT(place_of([](auto& block, const Env& e) { block.notify_all(e.words + 15, 1); }),
              ::testing::HasSubstr("words[15, 17) on PE "));
  EXPECT_THAT(place_of([](auto& block, const Env& e) { block.wait_all(e.words + 15, 0); }),
              ::testing::HasSubstr("words[15, 17) on PE "));
}

/// Takes an epoch in each block.
struct TakeEpoch {
  struct Args {
    Epochs epochs;
  };
  template <class Block>
  static void run(Block& block, const Args& args) {
    (void)block.next_epoch(args.epochs);
  }
};

TEST(Bounds, AGridHasAsManyEpochsAsBlocks) {
  const auto setup = [](World& world) {
    world.heap().epochs(64, "the neighbour");
    return TakeEpoch::Args{world.heap().epochs(64, "epochs")};
  };
  CheckOptions options;
  options.pes = 1;
  options.schedules = 1;
  EXPECT_THAT(check_kernel<TakeEpoch>({64, 64}, setup, options), is_clean());
  EXPECT_THAT(check_kernel<TakeEpoch>({65, 64}, setup, options), has_finding("out_of_bounds"));
}

/// Writes to a buffer after it was freed, when another has taken its place, or none has.
CheckResult check_use_after_free(bool symmetric, bool another) {
  struct Write {
    struct Args {
      float* to;
    };
    static void run(cpu::Block& block, const Args& args) { block.store_scalar(args.to, 1.0F); }
  };
  CheckOptions options;
  options.pes = 2;
  options.schedules = 1;
  return check(
      [=](World& world) {
        SymmetricHeap& heap = world.heap();
        const auto allocate = [&](const char* name) {
          return symmetric ? heap.allocate<float>(8, name).local() : heap.allocate_local<float>(8, name);
        };
        const Symm<float> old = symmetric ? heap.allocate<float>(8, "old") : Symm<float>();
        float* const memory = symmetric ? old.local() : allocate("old");
        symmetric ? heap.free(old) : heap.free_local(memory);
        if (another) allocate("young");
        Stream stream = world.make_stream("main");
        stream.launch<Write>({1, 64}, {memory});
        stream.synchronize();
      },
      options);
}

TEST(Bounds, DataThatWasNotWrittenIsNotRead) {
  const auto place = [](const auto& body) {
    const CheckResult result = check_body(body);
    return result.clean() ? "clean" : result.findings.front().kind + ": " + result.findings.front().buffer;
  };
  const auto load = [](Size written, Size read) {
    return [=](auto& block, const Env& e) {
      write(block, e.result, {0, written});
      block.template load<float>(e.result, Range{0, read});
    };
  };
  using ::testing::StartsWith;
  EXPECT_EQ(place(load(4, 4)), "clean");
  EXPECT_EQ(place(load(4, 0)), "clean");
  EXPECT_THAT(place(load(4, 5)), StartsWith("uninitialised_read: result[4] on PE "));
  EXPECT_THAT(place([](auto& block, const Env& e) { block.template load_scalar(e.result); }),
              StartsWith("uninitialised_read: result[0] on PE "));
  EXPECT_THAT(
      place([](auto& block, const Env& e) { block.fetch_add(reinterpret_cast<int*>(e.result), 1, Scope::kGpu); }),
      StartsWith("uninitialised_read: result[0] on PE "));
  EXPECT_EQ(place([](auto& block, const Env& e) { block.copy(e.result, e.local, 4); }), "clean") << "moves it alone";
}

TEST(Bounds, WhatWasFreedIsNoBufferAnyMore) {
  for (const bool symmetric : {false, true})
    for (const bool another : {false, true}) {
      const CheckResult result = check_use_after_free(symmetric, another);
      ASSERT_THAT(result, has_finding("use_after_free")) << symmetric << another;
      EXPECT_THAT(result.findings.front().buffer, ::testing::StartsWith("old[0] on PE "));
      EXPECT_THAT(result.findings.front().buffer, ::testing::EndsWith(", which was freed"));
    }
}

TEST(Bounds, WhatGoesBeyondThePEsMemoryEndsTheRun) {
  const CheckResult result = check_body([](auto& block, const Env& e) {
    if (block.pe() == 0) block.put(e.data, e.other.local(), Size{1} << 40, 1);
  });
  EXPECT_THAT(result, has_finding("out_of_bounds"));
  EXPECT_THAT(result, has_finding("error"));
}

TEST(Bounds, ThereIsNoPutOfLessThanNothing) {
  const CheckResult result =
      check_body([](auto& block, const Env& e) { block.put(e.data, e.other.local(), -1, 1 - block.pe()); });
  ASSERT_THAT(result, has_finding("error"));
  EXPECT_NE(result.findings.front().missing.find("must not be negative"), std::string::npos) << result.text();
}

TEST(Bounds, ARoleOfOneWarpHasNoRoles) {
  const CheckResult result = check_body([](auto& block, const Env&) {
    block.template parallel_for<1>(1, [](auto& role, int) { role.template parallel_for<1>(1, [](auto&, int) {}); });
  });
  ASSERT_THAT(result, has_finding("error"));
  EXPECT_NE(result.findings.front().missing.find("roles must not be nested"), std::string::npos) << result.text();
}

TEST(Bounds, AStrategyIsOneOfThem) {
  CheckOptions options;
  options.strategy = static_cast<Strategy>(9);
  EXPECT_THROW(check([](World&) {}, options), InvalidArgument);
}

TEST(Bounds, AWholeBufferIsWithinItsBounds) {
  EXPECT_THAT(check_body([](auto& block, const Env& e) {
                const auto values = block.template load<float>(e.local, Range{0, Env::kCount});
                block.store(e.result, Range{0, Env::kCount}, values);
              }),
              is_clean());
}

}  // namespace

}  // namespace tandem::check_test
