// TANDEM_LOG as a user sets it: the tool is silent by default and prints choices when it is asked.

#include <gmock/gmock.h>

#include <cstdlib>

#include "cli/tool.h"

namespace tandem::cli::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LogVariable {
 public:
  explicit LogVariable(const char* level) { setenv("TANDEM_LOG", level, 1); }
  ~LogVariable() { unsetenv("TANDEM_LOG"); }
};

TEST(LogVariable, InfoNamesTheWorldAndTheChoice) {
  const LogVariable variable("info");
  const Outcome outcome = tandem("run all_reduce --bytes 1K --pes 2 --machine h200x2");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("tandem info world of 2 simulated PEs of h200x2"),
                                 HasSubstr("tandem info all_reduce of at most 256 f32 on 2 PEs: "),
                                 HasSubstr("chosen by the selection table")));
}

TEST(LogVariable, InfoNamesTheOptionsOfAnOperator) {
  const LogVariable variable("info");
  const Outcome outcome = tandem("run gemm_reduce_scatter --shape 64x64x64 --pes 2");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("tandem info gemm_reduce_scatter 64x64x64 bf16 on 2 PEs: "));
}

TEST(LogVariable, AnUnknownLevelIsAWarning) {
  const LogVariable variable("loud");
  const Outcome outcome = tandem("run all_reduce --bytes 1K --pes 2");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("TANDEM_LOG: 'loud' given, allowed are off, warn, info and trace"));
}

}  // namespace
}  // namespace tandem::cli::testing
