#include "tools/tandem/run/run_options.h"

#include "tools/tandem/options/options.h"

namespace tandem::cli {

void validate(const RunOptions& a) { validate_shared(a); }

Size bytes_of(const RunOptions& a) { return parse_size("--bytes", a.bytes.value_or("1M")); }

}  // namespace tandem::cli
