#pragma once
/// The kinds of data of collectives.

#include <memory>

#include "tools/tandem/data/collective_data.h"

namespace tandem::cli {

/// Makes the data of collectives that do not reduce.
std::unique_ptr<CollectiveData> make_moved_data(const CollectiveCall& call);
/// Makes the data of collectives that reduce.
std::unique_ptr<CollectiveData> make_reduced_data(const CollectiveCall& call);

/// Makes the data of collectives with wire formats of 8 bits.
std::unique_ptr<CollectiveData> make_quantised_data(const CollectiveCall& call);

}  // namespace tandem::cli
