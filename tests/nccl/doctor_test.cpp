// `tandem doctor --process`: which NCCL the libraries of a process call.
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "bindings/nccl/abi.h"

namespace tandem::nccl_test {
namespace {

using ::testing::HasSubstr;

#ifdef TANDEM_CLI_PATH  // a build with the tool
std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  char part[4096];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof(part), pipe)) > 0;) text.append(part, got);
  ::pclose(pipe);
  return text;
}

TEST(NcclDoctor, SaysWhichLibraryAnswers) {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  int version = 0;
  ASSERT_EQ(ncclGetVersion(&version), ncclSuccess);
  const std::string doctor = std::string(TANDEM_CLI_PATH) + " doctor --process ";
  const std::string text = output_of(doctor + std::to_string(::getpid()));
  EXPECT_THAT(text, HasSubstr("/test_nccl imports "));
  EXPECT_THAT(text, HasSubstr("/libtandem_nccl.so (Tandem)\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("has no")));
  const std::string json = output_of(doctor + std::to_string(::getpid()) + " --json -");
  EXPECT_THAT(json, HasSubstr("\"missing\""));
  EXPECT_THAT(output_of(doctor + "4194304"), HasSubstr("--process: 4194304 given, allowed is a running process"));
}
#endif

}  // namespace
}  // namespace tandem::nccl_test
