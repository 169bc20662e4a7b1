#include "tools/tandem/tune/tune_options.h"

#include "tandem/error.h"

namespace tandem::cli {

void validate(const TuneOptions& a) {
  validate_sweep(a);
  check_count("--most", 1, a.most);
  if (a.most && !a.on_gpus())
    throw InvalidArgument("--most: does not apply to --backend " + a.backend + ", which tries all of them");
}

}  // namespace tandem::cli
