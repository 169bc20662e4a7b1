// The kind of an existing file of `tandem tune --out`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/text_file.h"
#include "tandem/error.h"
#include "tools/tandem/tune/tune.h"

namespace tandem::cli {

void check_output_kind(const std::string& file, TuneOutput wanted) {
  const std::optional<std::string> text = detail::read_text_file(file);
  // The reader of a damaged file reports the place, and keeps a damaged cache aside.
  const auto json = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!json.is_object()) return;
  const bool is_table = json.contains("groups"), is_cache = json.contains("entries");
  if (wanted == TuneOutput::kSelection && is_cache && !is_table)
    throw InvalidArgument(fmt::format(
        "--out: {} is a cache of operators, that of collectives is a selection table: give another file", file));
  if (wanted == TuneOutput::kOperatorCache && !is_cache)
    throw InvalidArgument(fmt::format("--out: {} is {}, that of operators is a cache: give another file", file,
                                      is_table ? "a selection table" : "JSON of something else"));
}

}  // namespace tandem::cli
