#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tandem {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    char name[] = "/tmp/tandem-log-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~LogTest() override { std::filesystem::remove_all(folder_); }

  static std::string text_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

TEST_F(LogTest, WritesWarningsToStandardErrorByDefault) {
  CaptureStderr();
  Log log(nullptr, nullptr);
  log.write(LogLevel::kWarn, "a link is slow");
  EXPECT_TRUE(log.writes(LogLevel::kWarn));
  EXPECT_FALSE(log.writes(LogLevel::kInfo));
  EXPECT_THAT(GetCapturedStderr(),
              AllOf(HasSubstr(":" + std::to_string(getpid()) + " tandem warning "), EndsWith("a link is slow\n")));
}

TEST_F(LogTest, LevelsAreOrdered) {
  EXPECT_FALSE(Log("off", nullptr).writes(LogLevel::kWarn));
  EXPECT_FALSE(Log("info", nullptr).writes(LogLevel::kTrace));
  EXPECT_TRUE(Log("info", nullptr).writes(LogLevel::kInfo));
  EXPECT_TRUE(Log("trace", nullptr).writes(LogLevel::kTrace));
}

TEST_F(LogTest, AnUnknownLevelIsReportedWithTheAllowedOnes) {
  CaptureStderr();
  const Log log("verbose", nullptr);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("'verbose' given, allowed are off, warn, info and trace"));
  EXPECT_TRUE(log.writes(LogLevel::kWarn));
}

TEST_F(LogTest, FileNamesHoldHostAndProcess) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  Log("info", (folder_ / "a.%h.%p.log").c_str()).write(LogLevel::kInfo, "first\nsecond\x1b");
  const auto path = folder_ / ("a." + std::string(host) + "." + std::to_string(getpid()) + ".log");
  EXPECT_THAT(text_of(path), EndsWith("tandem info first second \n"));
}

TEST_F(LogTest, AFileThatCannotBeWrittenFallsBackToStandardError) {
  CaptureStderr();
  Log log("info", "/dev/null/none");
  log.write(LogLevel::kInfo, "still here");
  EXPECT_THAT(GetCapturedStderr(),
              AllOf(HasSubstr("TANDEM_LOG_FILE: '/dev/null/none' cannot be written"), HasSubstr("still here")));
}

}  // namespace
}  // namespace tandem
