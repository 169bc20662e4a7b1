#include "tune/cache_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/json_text.h"
#include "base/text_file.h"
#include "tandem/error.h"
#include "trace/timeline/output_file.h"

namespace tandem::tune {

namespace {

constexpr int kFormat = 1;
constexpr std::chrono::seconds kLockTimeout{10};

/// Holds FILE.lock while it lives. The lock file stays, because removing it could take it from another process.
class FileLock {
 public:
  explicit FileLock(const std::string& file)
      : file_(::open((file + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw InvalidArgument(fmt::format("operator cache: cannot write {}.lock", file));
    const auto deadline = std::chrono::steady_clock::now() + kLockTimeout;
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        ::close(file_);
        throw RuntimeFailure(
            fmt::format("operator cache: another process has held {}.lock for {} s", file, kLockTimeout.count()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~FileLock() { ::close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

/// Returns the contents of a file that exists. Throws if it is damaged.
CacheJson contents_of(const std::string& file) {
  const std::optional<std::string> text = detail::read_text_file(file);
  if (!text) throw InvalidArgument(fmt::format("{}: cannot be read", file));
  CacheJson json = detail::parse_json(*text, file);
  if (json.at("format") != kFormat) throw InvalidArgument(fmt::format("{}: not format {}", file, kFormat));
  return json;
}

CacheJson empty() { return {{"format", kFormat}, {"entries", CacheJson::array()}}; }

}  // namespace

void read_cache(const std::string& file, std::string& warning, const std::function<void(const CacheJson&)>& take) {
  std::error_code why;
  const bool is_there = std::filesystem::exists(file, why);
  if (why) warning = fmt::format("the operator cache {} cannot be read and is not used: {}", file, why.message());
  if (!is_there) return;
  try {
    take(contents_of(file));
  } catch (const std::exception& error) {  // anything that the parser and the conversions throw
    warning = fmt::format("the operator cache {} is damaged and not used: {}", file, error.what());
  }
}

void update_cache(const std::string& file, const std::function<void(CacheJson&)>& change) {
  trace::check_writable(file);
  const FileLock lock(file);
  std::string damage;
  CacheJson json = empty();
  read_cache(file, damage, [&](const CacheJson& found) {
    CacheJson changed = found;
    change(changed);
    json = std::move(changed);
  });
  const bool is_new = !damage.empty() || !std::filesystem::exists(file);
  if (!damage.empty()) std::filesystem::rename(file, file + ".damaged");
  if (is_new) change(json);
  trace::write_file(file, [&](std::ostream& out) { out << json.dump(1) << '\n'; });
}

}  // namespace tandem::tune
