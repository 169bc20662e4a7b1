// Worlds of processes on CPUs that span hosts. TANDEM_HOST divides this computer, and messages go through libfabric.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <signal.h>

#include "bootstrap/processes.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::test {
namespace {

using bootstrap::testing::Ended;
using bootstrap::testing::Process;
using ::testing::HasSubstr;

struct Shape {
  int hosts;
  int size;  ///< PEs of a host
};

/// Variables of a process on a host. No PE is lost for silence on a busy machine.
std::vector<std::string> on_host(int host, const std::vector<std::string>& more) {
  std::vector<std::string> all{std::string("TANDEM_HOST=") + static_cast<char>('a' + host), "TANDEM_HEARTBEAT_S=600"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Starts one process for each PE.
std::vector<Process> start(const std::string& what, Shape shape, const std::vector<std::string>& variables = {}) {
  const UniqueId id = UniqueId::create();
  const int pes = shape.hosts * shape.size;
  std::vector<Process> all;
  for (int pe = 0; pe < pes; ++pe)
    all.emplace_back(TANDEM_WORLD_PEER,
                     std::vector<std::string>{what, id.text(), std::to_string(pe), std::to_string(pes)},
                     on_host(pe / shape.size, variables));
  return all;
}

void expect_good_ends(std::vector<Process> all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const Ended ended = all[pe].wait();
    EXPECT_EQ(ended.code, 0) << "PE " << pe;
    EXPECT_EQ(ended.output, "") << "PE " << pe;
  }
}

bool has_libfabric() { return ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr; }

class OnHosts : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!has_libfabric()) GTEST_SKIP() << "libfabric1 is not installed";
  }
};

TEST_P(OnHosts, Collectives) { expect_good_ends(start("collectives", GetParam())); }
TEST_P(OnHosts, Operators) { expect_good_ends(start("operators", GetParam())); }
TEST_P(OnHosts, SealedOperators) { expect_good_ends(start("operators", GetParam(), {"TANDEM_SEAL=all"})); }

INSTANTIATE_TEST_SUITE_P(Shapes, OnHosts, ::testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 1}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.hosts) + "x" + std::to_string(shape.param.size);
                         });

}  // namespace
}  // namespace tandem::test
