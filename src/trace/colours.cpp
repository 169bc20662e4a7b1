#include "trace/colours.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "tandem/timeline.h"

namespace tandem::trace {
namespace {

struct Colour {
  SpanKind kind;
  std::string_view light;
  std::string_view dark;
};

// Computing is blue and moving data green to violet; waiting is pale red, so that lost time is seen first.
constexpr std::array<Colour, kSpanKinds> kColours{{
    {SpanKind::kKernel, "#cfd8e6", "#36445a"},
    {SpanKind::kCompute, "#3574d4", "#4a88e0"},
    {SpanKind::kLoad, "#12a594", "#2dc4b2"},
    {SpanKind::kStore, "#087f8c", "#2f9fae"},
    {SpanKind::kPut, "#e8850c", "#f59e33"},
    {SpanKind::kGet, "#f0b429", "#f5c95a"},
    {SpanKind::kSignal, "#8a6d00", "#d9bb4a"},
    {SpanKind::kWait, "#f4b9b4", "#7c3a3a"},
    {SpanKind::kCopy, "#8250df", "#a27df0"},
    {SpanKind::kTransfer, "#2f9e44", "#45b65f"},
    {SpanKind::kLaunch, "#7d8896", "#8b97a6"},
}};

}  // namespace

std::string kind_colours(bool dark) {
  std::string css;
  for (const Colour& colour : kColours)
    css += fmt::format("--k-{}: {}; ", name(colour.kind), dark ? colour.dark : colour.light);
  return css;
}

}  // namespace tandem::trace
