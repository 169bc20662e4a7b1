#pragma once
/// What `tandem check` found, as JSON and as text.

#include <nlohmann/json.hpp>

#include "tandem/check.h"
#include "tools/tandem/check/check_mutants.h"

namespace tandem::cli {

nlohmann::ordered_json to_json(const Finding& finding);
nlohmann::ordered_json to_json(const MutantResult& result);

/// total, killed, equivalent, survived, by mutation operator and by algorithm, and the mutants that were not killed.
nlohmann::ordered_json mutants_json(const std::vector<nlohmann::ordered_json>& mutants);
/// The same, with the `stale` entries of the data file, for people.
std::string mutants_table(const nlohmann::ordered_json& summary);

}  // namespace tandem::cli
