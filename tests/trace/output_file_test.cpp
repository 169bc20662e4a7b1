#include "trace/timeline/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <string>

#include "tandem/error.h"
#include "tandem/timeline.h"
#include "trace/temporary_folder.h"

namespace tandem::trace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(OutputFile, WritesTheWholeFileAndNothingElse) {
  const testing::TemporaryFolder folder;
  write_file(folder / "a", [](std::ostream& out) { out << "first"; });
  write_file(folder / "a", [](std::ostream& out) { out << "second"; });
  EXPECT_EQ(testing::read_file(folder / "a"), "second");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(OutputFile, AFailedWriteLeavesTheOldFile) {
  const testing::TemporaryFolder folder;
  write_file(folder / "a", [](std::ostream& out) { out << "old"; });
  EXPECT_THROW(write_file(folder / "a",
                          [](std::ostream& out) {
                            out << "half";
                            throw Error("stop");
                          }),
               Error);
  EXPECT_EQ(testing::read_file(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(OutputFile, CheckLeavesNoTrace) {
  const testing::TemporaryFolder folder;
  check_writable(folder / "a");
  EXPECT_EQ(entries(folder.path()), 0U);
}

TEST(OutputFile, UnwritablePathsAreRefusedWithPathAndReason) {
  const testing::TemporaryFolder folder;
  const std::string missing = folder / "none/report.html";
  const auto reason = AllOf(HasSubstr(missing), HasSubstr("No such file or directory"));
  EXPECT_THAT([&] { check_writable(missing); }, ThrowsMessage<InvalidArgument>(reason));
  EXPECT_THAT([&] { write_chrome_trace(Timeline{}, missing); }, ThrowsMessage<InvalidArgument>(reason));
  EXPECT_THAT([&] { write_report(Report{}, missing); }, ThrowsMessage<InvalidArgument>(reason));
  EXPECT_THAT([&] { write_svg(Report{}, missing); }, ThrowsMessage<InvalidArgument>(reason));
  EXPECT_THAT([&] { check_writable(folder.path().string()); }, ThrowsMessage<InvalidArgument>(HasSubstr("folder")));
  EXPECT_THAT([&] { check_writable(""); }, ThrowsMessage<InvalidArgument>(HasSubstr("empty")));
}

TEST(OutputFile, APipeIsWrittenToAndNotReplaced) {
  const testing::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file(pipe, [](std::ostream& out) { out << "data"; });
  std::array<char, 8> read{};
  EXPECT_EQ(::read(reader, read.data(), read.size()), 4);
  ::close(reader);
  EXPECT_STREQ(read.data(), "data");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(OutputFile, ALinkStaysALink) {
  const testing::TemporaryFolder folder;
  write_file(folder / "target", [](std::ostream& out) { out << "old"; });
  fs::create_symlink("target", folder / "link");
  write_file(folder / "link", [](std::ostream& out) { out << "new"; });
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(testing::read_file(folder / "target"), "new");
}

TEST(OutputFile, AFullDeviceGivesItsReason) {
  EXPECT_THAT([] { write_file("/dev/full", [](std::ostream& out) { out << "data"; }); },
              ThrowsMessage<RuntimeFailure>("writing '/dev/full' failed: No space left on device"));
}

/// Others who can write into the folder may have made links with every name that can be guessed.
TEST(OutputFile, LinksBesideTheTargetAreNotFollowed) {
  const testing::TemporaryFolder folder;
  write_file(folder / "precious", [](std::ostream& out) { out << "kept"; });
  fs::create_symlink("precious", folder / "a.part" + std::to_string(::getpid()));
  check_writable(folder / "a");
  write_file(folder / "a", [](std::ostream& out) { out << "data"; });
  EXPECT_EQ(testing::read_file(folder / "precious"), "kept");
  EXPECT_EQ(testing::read_file(folder / "a"), "data");
  EXPECT_EQ(entries(folder.path()), 3U);
}

TEST(OutputFile, TheReaderOfAPipeSeesNoEndBecauseOfTheCheck) {
  const testing::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  check_writable(pipe);
  pollfd polled{reader, POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 0);
  ::close(reader);
}

TEST(OutputFile, AnUnfinishedFileCanBeRemoved) {
  const testing::TemporaryFolder folder;
  write_file(folder / "a", [](std::ostream& out) { out << "old"; });
  EXPECT_THROW(write_file(folder / "a",
                          [&](std::ostream&) {
                            EXPECT_EQ(entries(folder.path()), 2U);
                            remove_unfinished_files();
                            EXPECT_EQ(entries(folder.path()), 1U);
                          }),
               InvalidArgument);
  EXPECT_EQ(testing::read_file(folder / "a"), "old");
  remove_unfinished_files();  // of those that have ended nothing is left to remove
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(OutputFile, ADiskThatTakesNoMoreIsARuntimeFailure) {
  const testing::TemporaryFolder folder;
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THAT([&] { write_file(folder / "a", [](std::ostream& out) { out << std::string(100'000, 'x'); }); },
              ThrowsMessage<RuntimeFailure>(HasSubstr("File too large")));
  ::setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(entries(folder.path()), 0U);
}

}  // namespace
}  // namespace tandem::trace
