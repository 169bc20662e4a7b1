#pragma once
/// The results of `tandem check` as JSON and as text.

#include <nlohmann/json.hpp>

#include "tandem/check.h"
#include "tools/tandem/check/check_mutants.h"

namespace tandem::cli {

nlohmann::ordered_json to_json(const Finding& finding);
nlohmann::ordered_json to_json(const MutantResult& result);

/// Returns total, killed, equivalent and survived mutants, by mutation operator and by algorithm. It lists the mutants
/// that were not killed.
nlohmann::ordered_json mutants_json(const std::vector<nlohmann::ordered_json>& mutants);
/// Returns the same for people, with the `stale` entries of the data file.
std::string mutants_table(const nlohmann::ordered_json& summary);

}  // namespace tandem::cli
