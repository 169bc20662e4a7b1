#pragma once
/// Independent simulations in parallel. The simulator has one thread, so each worker is a process.

#include <functional>
#include <nlohmann/json.hpp>

namespace tandem::cli {

/// Returns the results of work(0), ..., work(count - 1). Worker processes, at most one for each core, start the items
/// in this order. `done` is called with the number of results so far. Rethrows a worker's first error as
/// RuntimeFailure.
std::vector<nlohmann::ordered_json> run_workers(std::size_t count,
                                                const std::function<nlohmann::ordered_json(std::size_t)>& work,
                                                const std::function<void(std::size_t)>& done);

}  // namespace tandem::cli
