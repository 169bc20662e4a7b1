#pragma once
/// A GoogleTest matcher for results of `tandem::check`; needs GoogleMock.
///
///   EXPECT_THAT(tandem::check(program, options), tandem::is_clean());

#include <gmock/gmock.h>

#include "tandem/check.h"

namespace tandem {

/// Matches a check without findings. For any other check GoogleTest prints every finding.
MATCHER(is_clean, negation ? "has findings" : "has no findings") { return arg.clean(); }

/// Matches a check with a finding of this kind: "source_reuse", "hang", ...
MATCHER_P(has_finding, kind, std::string(negation ? "has no finding of kind " : "has a finding of kind ") + kind) {
  for (const Finding& finding : arg.findings)
    if (finding.kind == kind) return true;
  return false;
}

}  // namespace tandem
