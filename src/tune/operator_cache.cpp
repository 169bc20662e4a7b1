// The cache of tuned operators: one JSON file.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/json_text.h"
#include "base/text_file.h"
#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"
#include "trace/timeline/output_file.h"
#include "tune/operator_names.h"

namespace tandem {

namespace {

using Json = nlohmann::ordered_json;

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

Json to_json(const TunedOperator& entry) {
  const OperatorKey& key = entry.key;
  const OperatorOptions& o = entry.options;
  return {{"op", name(key.op)},
          {"m", key.m},
          {"n", key.n},
          {"k", key.k},
          {"dtype", name(key.type)},
          {"b_layout", key.b_layout == BLayout::kNxK ? "NxK" : "KxN"},
          {"pes", key.pes},
          {"pes_per_node", key.pes_per_node},
          {"machine", key.machine},
          {"version", key.version},
          {"form", name(o.form)},
          {"transport", tune::name(o.copy_by)},
          {"direction", tune::name(o.direction)},
          {"reduction", tune::name(o.reduction)},
          {"shots", o.shots},
          {"splits", o.splits},
          {"order", o.order},
          {"tile_m", o.tile_m},
          {"tile_n", o.tile_n},
          {"communication_sms", o.communication_sms},
          {"us", entry.us},
          {"sequential_us", entry.sequential_us}};
}

/// Older files had another layout.
BLayout parse_layout(const Json& json) {
  const std::string text = json.value("b_layout", "NxK");
  if (text != "NxK" && text != "KxN")
    throw InvalidArgument(fmt::format("b_layout: '{}' given, allowed is NxK or KxN", text));
  return text == "NxK" ? BLayout::kNxK : BLayout::kKxN;
}

TunedOperator from_json(const Json& json) {
  TunedOperator entry;
  OperatorKey& key = entry.key;
  key.op = tune::parse_operator(json.at("op"));
  key.m = json.at("m");
  key.n = json.at("n");
  key.k = json.at("k");
  key.type = parse_dtype(json.at("dtype").get<std::string>());
  key.b_layout = parse_layout(json);
  key.pes = json.at("pes");
  key.pes_per_node = json.at("pes_per_node");
  key.machine = json.at("machine");
  key.version = json.at("version");
  OperatorOptions& o = entry.options;
  o.m = key.m;
  o.n = key.n;
  o.k = key.k;
  o.type = key.type;
  o.b_layout = key.b_layout;
  o.form = tune::parse_form(json.at("form"));
  o.copy_by = tune::parse_copy_by(json.at("transport"));
  o.direction = tune::parse_direction(json.at("direction"));
  o.reduction = tune::parse_reduction(json.at("reduction"));
  o.shots = json.at("shots");
  o.splits = json.at("splits");
  o.order = json.at("order");
  o.tile_m = json.at("tile_m");
  o.tile_n = json.at("tile_n");
  o.communication_sms = json.at("communication_sms");
  entry.us = json.at("us");
  entry.sequential_us = json.at("sequential_us");
  return entry;
}

/// Returns all entries. Throws if the file is damaged.
std::vector<TunedOperator> read(const std::string& file) {
  const std::optional<std::string> text = detail::read_text_file(file);
  if (!text) throw InvalidArgument(fmt::format("{}: cannot be read", file));
  const Json json = detail::parse_json(*text, file);
  if (json.at("format") != kFormat) throw InvalidArgument(fmt::format("{}: not format {}", file, kFormat));
  std::vector<TunedOperator> entries;
  for (const Json& entry : json.at("entries")) entries.push_back(from_json(entry));
  return entries;
}

/// Returns all entries. If the file is damaged or cannot be read, it returns none and sets a warning.
std::vector<TunedOperator> read_what_can_be_read(const std::string& file, std::string& warning) {
  std::error_code why;
  const bool is_there = std::filesystem::exists(file, why);
  if (why) warning = fmt::format("the operator cache {} cannot be read and is not used: {}", file, why.message());
  if (!is_there) return {};
  try {
    return read(file);
  } catch (const std::exception& error) {  // anything that the parser and the conversions throw
    warning = fmt::format("the operator cache {} is damaged and not used: {}", file, error.what());
    return {};
  }
}

}  // namespace

std::optional<TunedOperator> find_tuned(const std::string& file, const OperatorKey& key, std::string& warning) {
  for (TunedOperator& entry : read_what_can_be_read(file, warning))
    if (entry.key == key) return std::move(entry);
  return std::nullopt;
}

void store_tuned(const std::string& file, const TunedOperator& entry) {
  trace::check_writable(file);
  const FileLock lock(file);
  std::string damage;
  std::vector<TunedOperator> entries = read_what_can_be_read(file, damage);
  if (!damage.empty()) std::filesystem::rename(file, file + ".damaged");
  std::erase_if(entries, [&](const TunedOperator& other) { return other.key == entry.key; });
  entries.push_back(entry);
  Json json{{"format", kFormat}, {"entries", Json::array()}};
  for (const TunedOperator& one : entries) json["entries"].push_back(to_json(one));
  trace::write_file(file, [&](std::ostream& out) { out << json.dump(1) << '\n'; });
}

}  // namespace tandem
