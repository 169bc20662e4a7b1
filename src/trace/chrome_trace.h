#pragma once
/// Chrome trace files, which the Perfetto viewer (ui.perfetto.dev) and chrome://tracing open.

#include <iosfwd>
#include <string>

#include "trace/timeline.h"

namespace tandem::trace {

/// Writes the timeline as JSON object format of the "Trace Event Format" (Google, 2016): a process for each PE, a
/// thread for each lane, complete events ("X") for spans and flow events ("s", "f") for arrows. Times are microseconds
/// with six decimals, so that no picosecond is lost. Events come in order of time; the same timeline gives the same
/// bytes.
///
/// Throws as write_file does.
void write_chrome_trace(const Timeline& timeline, const std::string& path);
void write_chrome_trace(const Timeline& timeline, std::ostream& out);

}  // namespace tandem::trace
