#pragma once
/// One colour for each span kind, in both themes, for the page and the picture.

#include <string>

namespace tandem::trace {

/// CSS declarations of the custom properties --k-<kind>, "#rrggbb" each.
std::string kind_colours(bool dark);

}  // namespace tandem::trace
