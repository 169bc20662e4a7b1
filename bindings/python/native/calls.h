#pragma once
/// The calls of `tandem_sim_call`.

#include "given_data.h"
#include "request.h"

namespace tandem::python {

Json run(const Json& json, Arrays in, Arrays out);
/// The number of PEs that a run with these options has.
Json pes(const Json& json);
Json list();

}  // namespace tandem::python
