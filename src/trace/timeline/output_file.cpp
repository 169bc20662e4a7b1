#include "trace/timeline/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <ostream>
#include <streambuf>
#include <system_error>
#include <utility>

#include "tandem/error.h"
#include "trace/timeline/unfinished_files.h"

namespace tandem::trace {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// std::random_device of a static C++ library would need glibc 2.36; programs shall run on older systems.
std::uint32_t random_number() {
  std::uint32_t number = 0;
  return ::getentropy(&number, sizeof number) == 0 ? number : 0;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InvalidArgument("cannot write '" + path + "': " + why);
}

/// The final path of the data. A regular file there is replaced; pipes and devices are written to.
struct Target {
  std::string path;
  bool is_replaced = true;
};

Target target_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path.empty()) refuse(path, "the name is empty");
  if (fs::is_directory(path, ignored)) refuse(path, "it is a folder");
  if (!fs::exists(path, ignored)) return {path, true};
  if (!fs::is_regular_file(path, ignored)) return {path, false};
  return {fs::canonical(path, ignored).string(), true};  // a link stays a link
}

/// A buffer for a file descriptor that remembers the first error, which a std::filebuf forgets.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int fd) : fd_(fd) { setp(chunk_.data(), chunk_.data() + chunk_.size()); }

  int error() const { return error_; }

 protected:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) sputc(traits_type::to_char_type(next));
    return traits_type::not_eof(next);
  }
  int sync() override {
    for (const char* at = pbase(); at < pptr() && error_ == 0;) {
      const ssize_t written = ::write(fd_, at, static_cast<std::size_t>(pptr() - at));
      if (written >= 0) at += written;
      if (written < 0 && errno != EINTR) error_ = errno;
    }
    setp(chunk_.data(), chunk_.data() + chunk_.size());
    return error_ == 0 ? 0 : -1;
  }

 private:
  int fd_;
  int error_ = 0;
  std::array<char, 65536> chunk_;
};

/// A new file beside the target, made exclusively and not through a link.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& path, const std::string& target) : path_(path), target_(target) {
    constexpr int kTries = 100;
    for (int i = 0; fd_ < 0 && i < kTries; ++i) {
      name_ = target + ".part" + std::to_string(random_number() + static_cast<unsigned>(i));
      fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd_ < 0 && errno != EEXIST) break;
    }
    if (fd_ < 0) refuse(path, reason(errno));
    listed_.emplace(name_);
  }
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!kept_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_; }

  /// Renames the file to the target. Without this call the destructor removes it.
  void keep() {
    if (::close(std::exchange(fd_, -1)) != 0) throw RuntimeFailure("writing '" + path_ + "' failed: " + reason(errno));
    if (std::rename(name_.c_str(), target_.c_str()) != 0) refuse(path_, reason(errno));
    kept_ = true;
  }

 private:
  std::string path_, target_, name_;
  std::optional<UnfinishedFile> listed_;
  int fd_ = -1;
  bool kept_ = false;
};

void write_to(int fd, const std::string& path, const std::function<void(std::ostream&)>& write) {
  DescriptorBuffer buffer(fd);
  std::ostream stream(&buffer);
  write(stream);
  stream.flush();
  if (buffer.error() != 0) throw RuntimeFailure("writing '" + path + "' failed: " + reason(buffer.error()));
}

/// A pipe or a device.
void write_into(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) refuse(path, reason(errno));
  try {
    write_to(fd, path, write);
  } catch (...) {
    ::close(fd);
    throw;
  }
  if (::close(fd) != 0) throw RuntimeFailure("writing '" + path + "' failed: " + reason(errno));
}

}  // namespace

void check_writable(const std::string& path) {
  const Target target = target_of(path);
  // A pipe is not opened here, because its reader would see an end of file.
  if (!target.is_replaced && ::access(target.path.c_str(), W_OK) != 0) refuse(path, reason(errno));
  if (target.is_replaced) TemporaryFile(path, target.path);
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const Target target = target_of(path);
  if (!target.is_replaced) return write_into(target.path, write);
  TemporaryFile file(path, target.path);
  write_to(file.fd(), path, write);
  file.keep();
}

}  // namespace tandem::trace
