#include "trace/timeline/colours.h"

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

// Found by a search around blue for computation, green for data movement and pale red for waiting. Any two, and idle
// time, stay distinct with every kind of colour blindness (tests/trace/colours_test.cpp).
constexpr std::array<Colour, kSpanKinds> kColours{{
    {SpanKind::kKernel, "#94b5dd", "#656e67"},
    {SpanKind::kCompute, "#3649da", "#5471ff"},
    {SpanKind::kLoad, "#2db4a3", "#29f9c8"},
    {SpanKind::kStore, "#133d65", "#219ea6"},
    {SpanKind::kPut, "#e89315", "#ec8f28"},
    {SpanKind::kGet, "#f3e438", "#f2f75a"},
    {SpanKind::kSignal, "#764112", "#ae8940"},
    {SpanKind::kWait, "#ffb68f", "#844e20"},
    {SpanKind::kCopy, "#cf8eff", "#f3b9fc"},
    {SpanKind::kTransfer, "#719a42", "#85e266"},
    {SpanKind::kLaunch, "#7f6468", "#a6a08d"},
}};

}  // namespace

std::string kind_colours(bool dark) {
  std::string css;
  for (const Colour& colour : kColours)
    css += fmt::format("--k-{}: {}; ", name(colour.kind), dark ? colour.dark : colour.light);
  return css;
}

}  // namespace tandem::trace
