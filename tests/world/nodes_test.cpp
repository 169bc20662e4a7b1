// Worlds on CPUs of several nodes and hosts.
#include <gmock/gmock.h>

#include <cstdlib>
#include <mutex>
#include <thread>

#include "tandem/error.h"
#include "world/cases.h"
#include "world/pes/nodes.h"
#include "world/pes/threads.h"

namespace tandem::test {
namespace {

using world::HostOfPe;
using world::pes_per_host;

/// One host for each letter.
std::vector<HostOfPe> hosts(const std::string& letters) {
  std::vector<HostOfPe> all;
  for (const char letter : letters) all.push_back({std::string("id of ") + letter, std::string(1, letter)});
  return all;
}

std::string refusal(const std::string& letters) {
  try {
    pes_per_host(hosts(letters));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

/// Sets a variable of the environment during its lifetime.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Hosts, HaveEquallyManyConsecutivePes) {
  EXPECT_EQ(pes_per_host(hosts("a")), 1);
  EXPECT_EQ(pes_per_host(hosts("aaa")), 3);
  EXPECT_EQ(pes_per_host(hosts("abc")), 1);
  EXPECT_EQ(pes_per_host(hosts("aabbcc")), 2);
}

TEST(Hosts, AreListedWhereTheyDoNotFit) {
  EXPECT_EQ(refusal("abab"),
            "hosts: PEs 0, 2 on host a, PEs 1, 3 on host b given, allowed are consecutive PEs on each host, and as "
            "many on every host");
  EXPECT_THAT(refusal("aab"), ::testing::HasSubstr("PEs 0, 1 on host a, PEs 2 on host b given"));
  EXPECT_THAT(refusal("abb"), ::testing::HasSubstr("PEs 0 on host a, PEs 1, 2 on host b given"));
  EXPECT_THAT(refusal("aabbaa"), ::testing::HasSubstr("PEs 0, 1, 4, 5 on host a"));
}

TEST(VirtualNodes, DivideThePesOfAHost) {
  EXPECT_EQ(world::node_size_of(6), 6);
  const Variable size("TANDEM_NODE_SIZE", "2");
  EXPECT_EQ(world::node_size_of(6), 2);
  WorldThreads(4, host_options()).run([](World& world) {
    EXPECT_EQ(world.team().node_size, 2);
    EXPECT_EQ(world.node_team().first, world.pe() / 2 * 2);
    EXPECT_EQ(world.rail_team().stride, 2);
  });
}

TEST(VirtualNodes, OfOtherSizesAreRefused) {
  for (const char* const text : {"0", "4", "-1", "2x", "x"}) {
    const Variable size("TANDEM_NODE_SIZE", text);
    EXPECT_THROW(world::node_size_of(6), InvalidArgument) << text;
  }
}

/// Runs a program on all PEs, and returns what it gives or throws.
template <class Run>
std::vector<std::string> on_threads(world::Threads& all, const Run& run) {
  std::mutex mutex;
  std::vector<std::string> wrong;
  const auto add = [&](const std::vector<std::string>& own) {
    const std::lock_guard lock(mutex);
    wrong.insert(wrong.end(), own.begin(), own.end());
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(all.num_pes()));
  for (int pe = 0; pe < all.num_pes(); ++pe)
    threads.emplace_back([&, pe] {
      try {
        world::run_pe(all, pe, [&](World& world) { add(run(world)); });
      } catch (const std::exception& error) {
        all.fail({bootstrap::FailureKind::kRuntimeFailure, "another PE has failed"});
        add({error.what()});
      }
    });
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

struct Nodes {
  int nodes;
  int size;
};

class OnNodes : public ::testing::TestWithParam<Nodes> {
 protected:
  static int pes() { return GetParam().nodes * GetParam().size; }

  template <class Run>
  static std::vector<std::string> in_disorder(std::uint64_t seed, const Run& run) {
    const wire::Disorder disorder{.seed = seed, .delayed_polls = 6, .repeated_per_mille = 100};
    world::Threads all(world::host_devices(), pes(), host_options(), disorder);
    return on_threads(all, run);
  }

  template <class Run>
  static std::vector<std::string> by_threads(const Run& run) {
    const Variable size("TANDEM_NODE_SIZE", std::to_string(GetParam().size));
    return answers_of_threads(pes(), run);
  }
};

TEST_P(OnNodes, CollectivesOfThreads) {
  const auto cases = between_nodes(collective_cases(pes(), true));
  EXPECT_THAT(by_threads([&](World& world) { return run_collectives(world, cases); }), ::testing::IsEmpty());
}

/// Messages between nodes are late, out of order and repeated.
TEST_P(OnNodes, CollectivesInDisorder) {
  const Variable size("TANDEM_NODE_SIZE", std::to_string(GetParam().size));
  auto cases = between_nodes(collective_cases(pes(), true));
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::vector<RoundsCase> some;
    for (std::size_t i = seed - 1; i < cases.size(); i += 4) some.push_back(cases[i]);
    EXPECT_THAT(in_disorder(seed, [&](World& world) { return run_collectives(world, some); }), ::testing::IsEmpty());
  }
}

TEST_P(OnNodes, OperatorsInDisorder) {
  const Variable size("TANDEM_NODE_SIZE", std::to_string(GetParam().size));
  const auto cases = operator_cases(pes());
  EXPECT_THAT(in_disorder(5, [&](World& world) { return run_operators(world, cases); }), ::testing::IsEmpty());
}

TEST_P(OnNodes, OperatorsOfThreads) {
  const auto cases = operator_cases(pes());
  EXPECT_THAT(by_threads([&](World& world) { return run_operators(world, cases); }), ::testing::IsEmpty());
}

/// Writes to the next PE, and waits until that has arrived.
struct PutAndWait {
  struct Args {
    Symm<int> to;
    const int* from;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    block.put_nbi(a.to, a.from, 1, (block.pe() + 1) % block.num_pes());
    block.quiet();
  }
};

TEST(Nodes, ATimeOutNamesTheProxyAndItsRequests) {
  const Variable size("TANDEM_NODE_SIZE", "1");
  WorldOptions options = host_options();
  options.timeout_s = options.arrival_timeout_s = 0.2;
  world::Threads all(world::host_devices(), 2, options, {.lost_per_mille = 1000});
  const auto errors = on_threads(all, [](World& world) {
    const auto to = world.heap().allocate<int>(1, "to");
    Stream stream = world.make_stream("main");
    stream.launch<PutAndWait>({1, 32}, {to, world.heap().allocate_local<int>(1, "from")});
    stream.synchronize();
    return std::vector<std::string>{};
  });
  EXPECT_THAT(errors,
              ::testing::Contains(::testing::ContainsRegex(
                  "block 0 gave up waiting for the proxy of PE [01] to carry out request 2, found 1 .requests: 2 "
                  "posted, 2 sent, 1 answered.")));
}

INSTANTIATE_TEST_SUITE_P(Shapes, OnNodes, ::testing::Values(Nodes{2, 1}, Nodes{2, 2}, Nodes{3, 1}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.nodes) + "x" + std::to_string(shape.param.size);
                         });

}  // namespace
}  // namespace tandem::test
