#include "trace/cut.h"

namespace tandem::trace {

Timeline cut(const Timeline& whole, Time begin, Time end) {
  Timeline part = whole;
  part.begin = begin;
  part.end = end;
  const auto is_outside = [&](Time from, Time to) { return from < begin || to > end; };
  std::erase_if(part.spans, [&](const Span& span) { return is_outside(span.begin, span.end); });
  std::erase_if(part.arrows, [&](const Arrow& arrow) { return is_outside(arrow.from, arrow.to); });
  return part;
}

}  // namespace tandem::trace
