#include "trace/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tandem/error.h"

namespace tandem::trace {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw InvalidArgument("cannot write '" + path + "': " + reason);
}

/// Where the data goes first: beside the target, or the target itself where that is no regular file (a pipe, /dev/null)
/// and must not be replaced.
struct Place {
  std::string target;
  std::string first;
};

Place place_for(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path.empty()) refuse(path, "the name is empty");
  if (fs::is_directory(path, ignored)) refuse(path, "it is a folder");
  if (!fs::exists(path, ignored)) return {path, path + ".part" + std::to_string(::getpid())};
  if (!fs::is_regular_file(path, ignored)) return {path, path};
  const std::string target = fs::canonical(path, ignored).string();  // a link stays a link
  return {target, target + ".part" + std::to_string(::getpid())};
}

class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : path_(path), place_(place_for(path)) {
    errno = 0;
    file_.open(place_.first, std::ios::binary | std::ios::trunc);
    if (!file_) refuse(path, std::strerror(errno));
  }
  ~OutputFile() {
    if (!kept_ && place_.first != place_.target) std::remove(place_.first.c_str());
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return file_; }

  /// Makes it the file at its path; without this the destructor removes it.
  void keep() {
    errno = 0;
    file_.close();
    if (!file_) throw RuntimeFailure("writing '" + path_ + "' failed: " + std::strerror(errno));
    if (place_.first != place_.target && std::rename(place_.first.c_str(), place_.target.c_str()) != 0) {
      refuse(path_, std::strerror(errno));
    }
    kept_ = true;
  }

 private:
  std::string path_;
  Place place_;
  std::ofstream file_;
  bool kept_ = false;
};

}  // namespace

void check_writable(const std::string& path) { OutputFile{path}; }

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  OutputFile file(path);
  write(file.stream());
  file.keep();
}

}  // namespace tandem::trace
