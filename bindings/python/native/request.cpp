#include "request.h"

#include <fmt/format.h>

#include <cctype>
#include <functional>
#include <limits>
#include <map>

#include "tandem/error.h"

namespace tandem::python {
namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? fmt::format("'{}'", value.get<std::string>()) : value.dump();
}

[[noreturn]] void refuse_type(const std::string& key, const Json& value, const char* allowed) {
  throw InvalidType(fmt::format("{}: {} given, allowed is {}", key, text_of(value), allowed));
}

Size whole(const std::string& key, const Json& value, Size most) {
  if (!value.is_number()) refuse_type(key, value, "a whole number");
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) &&
                    value.get<Size>() <= most && value.get<Size>() >= -most;
  if (!fits)
    throw InvalidArgument(
        fmt::format("{}: {} given, allowed is a whole number of at most {}", key, value.dump(), most));
  return value.get<Size>();
}

constexpr Size kMostOfAnInt = std::numeric_limits<int>::max();
constexpr Size kMostElements = Size{1} << 46;

std::string text(const std::string& key, const Json& value) {
  if (!value.is_string()) refuse_type(key, value, "a text");
  return value.get<std::string>();
}

std::vector<double> numbers(const std::string& key, const Json& value) {
  if (!value.is_array()) refuse_type(key, value, "a list of numbers");
  std::vector<double> all;
  for (const Json& one : value) {
    if (!one.is_number()) refuse_type(key, value, "a list of numbers");
    all.push_back(one.get<double>());
  }
  return all;
}

using Take = std::function<void(Request&, const std::string& key, const Json& value)>;

Take to_text(std::string cli::RunOptions::*member) {
  return [member](Request& r, const std::string& key, const Json& value) { r.arguments.*member = text(key, value); };
}
Take to_text(std::optional<std::string> cli::RunOptions::*member) {
  return [member](Request& r, const std::string& key, const Json& value) { r.arguments.*member = text(key, value); };
}
Take to_int(std::optional<int> cli::RunOptions::*member) {
  return [member](Request& r, const std::string& key, const Json& value) {
    r.arguments.*member = static_cast<int>(whole(key, value, kMostOfAnInt));
  };
}

void take_seed(Request& r, const std::string& key, const Json& value) {
  if (!value.is_number()) refuse_type(key, value, "a whole number");
  if (!value.is_number_unsigned())
    throw InvalidArgument(fmt::format("{}: {} given, allowed is 0 to 2^64 - 1", key, value.dump()));
  r.arguments.seed = value.get<std::uint64_t>();
}

void take_count(Request& r, const std::string& key, const Json& value) {
  r.count = whole(key, value, kMostElements);
  r.has_count = true;
}

/// The keys of a run besides "call" and "op".
const std::map<std::string, Take>& takers() {
  using A = cli::RunOptions;
  static const std::map<std::string, Take> all{
      {"machine", to_text(&A::machine)},
      {"nodes", to_int(&A::nodes)},
      {"pes", to_int(&A::pes)},
      {"pes_per_node", to_int(&A::pes_per_node)},
      {"seed", take_seed},
      {"dtype", to_text(&A::dtype)},
      {"algorithm", to_text(&A::algorithm)},
      {"bytes", to_text(&A::bytes)},
      {"count", take_count},
      {"reduction", to_text(&A::reduction)},
      {"root", to_int(&A::root)},
      {"blocks", to_int(&A::blocks)},
      {"selection", to_text(&A::selection)},
      {"scales", [](Request& r, const std::string& key, const Json& value) { r.scales = numbers(key, value); }},
      {"shape", to_text(&A::shape)},
      {"model", to_text(&A::model)},
      {"m",
       [](Request& r, const std::string& key, const Json& value) { r.arguments.m = whole(key, value, kMostElements); }},
      {"transport", to_text(&A::transport)},
      {"direction", to_text(&A::direction)},
      {"order", to_text(&A::order)},
      {"tile", to_text(&A::tile)},
      {"out_dtype", to_text(&A::out_dtype)},
      {"b_layout", to_text(&A::b_layout)},
      {"activation", to_text(&A::activation)},
      {"splits", to_int(&A::splits)},
      {"shots", to_int(&A::shots)},
      {"communication_sms", to_int(&A::communication_sms)},
      {"report", to_text(&A::report)},
      {"svg", to_text(&A::svg)},
      {"trace", to_text(&A::trace)},
      {"critical_path",
       [](Request& r, const std::string& key, const Json& value) {
         if (!value.is_boolean()) refuse_type(key, value, "true or false");
         r.critical_path = value.get<bool>();
       }},
  };
  return all;
}

}  // namespace

Request parse_run(const Json& json) {
  Request request;
  for (const auto& [key, value] : json.items()) {
    if (key == "call") continue;
    if (key == "op") {
      request.arguments.subject = text(key, value);
      continue;
    }
    const auto taker = takers().find(key);
    if (taker == takers().end()) throw InvalidArgument(fmt::format("{}: no option of a run", key));
    taker->second(request, key, value);
  }
  return request;
}

std::string with_argument_names(const std::string& message) {
  static const std::map<std::string, std::string> others{
      {"algo", "algorithm"}, {"phantom", "a call without data"}, {"shape", "m, n, k"}};
  static const std::map<std::string, std::string> fields{
      {"reduce_op", "op"}, {"PEs", "pes"}, {"type", "dtype"}, {"out_type", "out_dtype"}};
  const auto field = fields.find(message.substr(0, message.find(':')));
  std::string all = field == fields.end() ? "" : field->second;
  for (std::size_t i = field == fields.end() ? 0 : field->first.size(); i < message.size();) {
    const bool begins = message.compare(i, 2, "--") == 0 && i + 2 < message.size() &&
                        std::islower(static_cast<unsigned char>(message[i + 2])) != 0 &&
                        (i == 0 || message[i - 1] == ' ');
    if (!begins) {
      all += message[i++];
      continue;
    }
    std::string name;
    for (i += 2; i < message.size() && (std::islower(static_cast<unsigned char>(message[i])) != 0 || message[i] == '-');
         ++i)
      name += message[i] == '-' ? '_' : message[i];
    const auto other = others.find(name);
    all += other == others.end() ? name : other->second;
  }
  return all;
}

}  // namespace tandem::python
