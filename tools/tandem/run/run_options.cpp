#include "tools/tandem/run/run_options.h"

#include "tandem/error.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {

void validate(const RunOptions& a) {
  validate_shared(a);
  const bool has_pictures = !a.trace.empty() || !a.report.empty() || !a.svg.empty();
  if (a.on_host() && has_pictures)
    throw InvalidArgument("--trace, --report, --svg: does not apply to --backend host, which records no timeline");
}

Size bytes_of(const RunOptions& a) { return parse_size("--bytes", a.bytes.value_or("1M")); }

}  // namespace tandem::cli
