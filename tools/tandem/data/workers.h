#pragma once
/// Independent simulations side by side: the simulator has one thread, so each worker is a process.

#include <functional>
#include <nlohmann/json.hpp>

namespace tandem::cli {

/// The results of work(0), ..., work(count - 1), begun in this order by whichever of the worker processes is free, at
/// most as many as the processor has cores. `done` is called with their number so far as results come. Rethrows a
/// worker's first error as RuntimeFailure.
std::vector<nlohmann::ordered_json> run_workers(std::size_t count,
                                                const std::function<nlohmann::ordered_json(std::size_t)>& work,
                                                const std::function<void(std::size_t)>& done);

}  // namespace tandem::cli
