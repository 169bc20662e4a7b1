#include "tools/tandem/options/json_file.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tandem/error.h"
#include "trace/timeline/output_file.h"

namespace tandem::cli {

void check_json_file(const Arguments& a) {
  if (a.json.empty() || a.json_to_stdout()) return;
  if (a.json == a.trace || a.json == a.report || a.json == a.svg)
    throw InvalidArgument(fmt::format("'{}' was given for two files", a.json));
  trace::check_writable(a.json);
}

void write_json(const Arguments& a, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(2) + "\n";
  if (a.json_to_stdout()) std::cout << text;
  if (!a.json.empty() && !a.json_to_stdout()) trace::write_file(a.json, [&](std::ostream& out) { out << text; });
}

}  // namespace tandem::cli
