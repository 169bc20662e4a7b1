#pragma once
/// The cache file of tuned calls: one JSON object, which processes may read and write at the same time.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace tandem::tune {

using CacheJson = nlohmann::ordered_json;

/// Calls `take` with the contents, if the file exists. Where the file is damaged or cannot be read, also where `take`
/// throws, it sets `warning` to one line.
void read_cache(const std::string& file, std::string& warning, const std::function<void(const CacheJson&)>& take);

/// Replaces the contents by those that `change` has changed, as tandem::store_tuned says. A damaged file is one that
/// `read_cache` or `change` cannot take.
void update_cache(const std::string& file, const std::function<void(CacheJson&)>& change);

}  // namespace tandem::tune
