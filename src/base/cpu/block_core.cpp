/// Checks of fragments and roles. They cost no simulated time. A GPU does not check them: it would lose or mix
/// elements.

#include "tandem/impl/cpu/block_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem::cpu {

void BlockCore::require_tile(Size elements, Size element_bytes, const char* operation, Site site) const {
  // A warp moves so much at least, however small a check's tiles are.
  constexpr Size kWarpBytes = 512;
  const Size most = std::max(tile_bytes(), kWarpBytes) / element_bytes;
  if (elements > most)
    throw CheckFailed(
        fmt::format("{}:{}: {} of {} elements, a step of `tiles` has {} at most: a GPU would leave out the rest",
                    site.file, site.line, operation, elements, most));
}

void BlockCore::require_fragment(Size size, const Layout& its, Size elements, Size element_bytes, const char* operation,
                                 Site site) const {
  const auto refuse = [&](const std::string& what) {
    throw CheckFailed(fmt::format("{}:{}: {} of a fragment {}", site.file, site.line, operation, what));
  };
  if (size != elements) refuse(fmt::format("of {} elements, its range has {}", size, elements));
  const Layout here = layout(element_bytes);
  if (its.suits(here)) return;
  if (!Layout{0, its.holder}.suits(here))
    refuse("that another block or role has loaded: a fragment stays where it was loaded");
  refuse(fmt::format("that was loaded from elements of {} bytes, allowed are {}", its.element_bytes, element_bytes));
}

void BlockCore::require_roles(int n, const int* widths, int warps, bool is_role) {
  if (n < 0 || n > 15) throw InvalidArgument(fmt::format("parallel: {} roles asked, 0 to 15 are allowed", n));
  if (is_role) throw InvalidArgument("parallel: roles must not be nested");
  int width = 0;
  for (int i = 0; i < n; ++i) {
    if (widths[i] < 1) throw InvalidArgument(fmt::format("parallel: a role of {} warps asked, at least 1", widths[i]));
    width += widths[i];
  }
  if (width > warps)
    throw InvalidArgument(fmt::format("parallel: roles of {} warps in all asked, the block has {}", width, warps));
}

void refuse_pair(Size size, const Layout& layout, Size other_size, const Layout& other, Site site) {
  const std::string at = fmt::format("{}:{}: two fragments", site.file, site.line);
  if (size != other_size) throw CheckFailed(fmt::format("{} of {} and {} elements", at, size, other_size));
  if (layout.element_bytes != other.element_bytes)
    throw CheckFailed(fmt::format("{} that were loaded from elements of {} and {} bytes: they lie differently", at,
                                  layout.element_bytes, other.element_bytes));
  throw CheckFailed(fmt::format("{} that two blocks or roles have loaded: each holds its own", at));
}

}  // namespace tandem::cpu
