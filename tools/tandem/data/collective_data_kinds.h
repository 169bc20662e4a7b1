#pragma once
/// The two kinds of collectives' data.

#include <memory>

#include "tools/tandem/data/collective_data.h"

namespace tandem::cli {

/// Of collectives that do not reduce.
std::unique_ptr<CollectiveData> make_moved_data(const CollectiveCall& call);
/// Of collectives that do.
std::unique_ptr<CollectiveData> make_reduced_data(const CollectiveCall& call);

}  // namespace tandem::cli
