#pragma once
/// Reports: one self-contained HTML page with timelines to explore, and a static SVG picture of the same.

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "trace/timeline.h"

namespace tandem::trace {

struct Report {
  std::string title;
  /// Shown above the timelines in this order: {"overlapped", "482 us"}.
  std::vector<std::pair<std::string, std::string>> summary;
  /// Drawn under each other on one time scale that begins at each one's `begin`.
  std::vector<Timeline> timelines;
};

/// Writes one HTML file that needs no network: lanes grouped by PE, zoom, pan, hover, arrows from cause to wait, idle
/// time, and the critical path. It holds about 15 bytes a span and 25 an arrow. Beyond half a million spans only as
/// many PEs are shown as fit, and the page says so. The page sets `data-rendered` of its body to the number of lanes
/// that it drew, and `data-error` where its script failed.
///
/// Throws as write_file does.
void write_report(const Report& report, const std::string& path);
void write_report(const Report& report, std::ostream& out);

/// Writes a picture of about 1000 x 400 points for documents, in light and dark: of each timeline the first four PEs,
/// of each PE what its SMs did (the share of SMs over time), its copy engines and its links.
///
/// Throws as write_file does.
void write_svg(const Report& report, const std::string& path);
void write_svg(const Report& report, std::ostream& out);

}  // namespace tandem::trace
