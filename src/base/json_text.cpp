#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tandem/error.h"

namespace tandem::detail {
namespace {

using Json = nlohmann::json;

/// Returns "line 3, column 7" for the byte before which the parser stopped, counted from 1.
std::string position(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return fmt::format("line {}, column {}", line, column);
}

/// Rejects an object that has the same name twice.
class DuplicateCheck {
 public:
  explicit DuplicateCheck(const std::string& what) : what_(what) {}

  bool operator()(int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key && !names_.back().insert(parsed.get<std::string>()).second)
      throw InvalidArgument(fmt::format("{}: {} is given twice", what_, parsed.get<std::string>()));
    return true;
  }

 private:
  const std::string& what_;
  std::vector<std::set<std::string>> names_;
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& what) {
  try {
    return Json::parse(text, DuplicateCheck(what));
  } catch (const Json::parse_error& error) {
    throw InvalidArgument(fmt::format("{}: {}: not JSON", what, position(text, error.byte)));
  } catch (const Json::exception&) {
    throw InvalidArgument(fmt::format("{}: a number is too large", what));
  }
}

std::string given(const nlohmann::json& value) {
  const std::string text = value.dump();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

}  // namespace tandem::detail
