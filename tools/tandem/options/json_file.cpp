#include "tools/tandem/options/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tandem/error.h"
#include "tools/tandem/options/options.h"
#include "trace/timeline/output_file.h"

namespace tandem::cli {

void check_json_file(const OutputOptions& a, std::initializer_list<std::string> other_files) {
  if (a.json.empty() || a.json_to_stdout()) return;
  if (std::ranges::find(other_files, a.json) != other_files.end())
    throw InvalidArgument(fmt::format("--json: '{}' given, which another option has, too", a.json));
  check_output("--json", a.json);
}

void check_output(const char* option, const std::string& path) {
  for_option(option, "", [&] { trace::check_writable(path); });
}

void write_json(const OutputOptions& a, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(2) + "\n";
  if (a.json_to_stdout()) std::cout << text;
  if (!a.json.empty() && !a.json_to_stdout()) trace::write_file(a.json, [&](std::ostream& out) { out << text; });
}

}  // namespace tandem::cli
