// Communicators that Tandem cannot serve: the real NCCL carries them, for which a library stands in here.
#include "peers.h"

namespace tandem::nccl_test {
namespace {

using ::testing::HasSubstr;

/// Runs two processes that take themselves for two hosts without a network between them. `path` names the other NCCL.
std::vector<std::string> on_two_hosts(const std::string& deed, const char* path) {
  ::setenv("TANDEM_FABRIC_LIBRARY", "/none", 1);
  if (path != nullptr) ::setenv("TANDEM_NCCL_FALLBACK", path, 1);
  const auto texts = outputs(2, deed, [](int rank) { ::setenv("TANDEM_HOST", rank == 0 ? "one" : "two", 1); });
  for (const char* const name : {"TANDEM_FABRIC_LIBRARY", "TANDEM_NCCL_FALLBACK", "TANDEM_HOST"}) ::unsetenv(name);
  return texts;
}

/// The output of a rank whose communicator goes to the stand-in. Its id comes from rank 0, and its calls bring 77.
/// Calls that the stand-in makes of itself by NCCL's names come back to it.
constexpr const char* kCarried =
    "stand-in init 2 id real\nstand-in group start\nstand-in sum\nstand-in count 2\nstand-in group end\nsum 77\n"
    "stand-in count 2\ncount 2\nstand-in error 0\nstate 0\nstand-in destroy\nend\n";

TEST(NcclFallback, CarriesACommunicatorAcrossHosts) {
  for (const std::string& text : on_two_hosts("carried", TANDEM_NCCL_STAND_IN)) EXPECT_EQ(text, kCarried);
}

TEST(NcclFallback, FindsALibraryThatIsMapped) {
  for (const std::string& text : on_two_hosts("mapped", nullptr)) EXPECT_EQ(text, kCarried);
}

TEST(NcclFallback, LeavesNothingOfACommunicatorThatEndsWhileItIsMade) {
  for (const std::string& text : on_two_hosts("abort_soon", TANDEM_NCCL_STAND_IN))
    EXPECT_EQ(text, "aborted\nstand-in init 2 id real\nstand-in abort\n");
}

TEST(NcclFallback, SaysWhyTheOtherLibraryFails) {
  ::setenv("TANDEM_STAND_IN_FAILS", "1", 1);
  for (const std::string& text : on_two_hosts("carried", TANDEM_NCCL_STAND_IN)) {
    EXPECT_THAT(text, HasSubstr("no communicator: 1: "));
    EXPECT_THAT(text, HasSubstr("libfabric"));  // why Tandem cannot serve it
    EXPECT_THAT(text, HasSubstr("ncclCommInitRankConfig of "));
    EXPECT_THAT(text, HasSubstr(": no GPU here"));
  }
  ::unsetenv("TANDEM_STAND_IN_FAILS");
}

TEST(NcclFallback, SaysWhatWasLookedFor) {
  for (const std::string& text : on_two_hosts("carried", "off")) EXPECT_THAT(text, HasSubstr("no communicator: 5: "));
  for (const std::string& text : on_two_hosts("carried", "/no/such/library.so")) {
    EXPECT_THAT(text, HasSubstr("libfabric"));  // why Tandem cannot serve it
    EXPECT_THAT(text, HasSubstr("no other NCCL: /no/such/library.so is not it (TANDEM_NCCL_FALLBACK=/no/such"));
  }
}

}  // namespace
}  // namespace tandem::nccl_test
