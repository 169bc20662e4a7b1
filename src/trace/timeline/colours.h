#pragma once
/// One colour for each span kind in both themes, for the page and the picture.

#include <string>

namespace tandem::trace {

/// Returns CSS declarations of the custom properties --k-<kind>, each as "#rrggbb".
std::string kind_colours(bool dark);

}  // namespace tandem::trace
