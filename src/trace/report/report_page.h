#pragma once
/// The parts of the report's page that do not depend on the data: the files of src/trace/report/, embedded by the
/// build.

#include <string_view>

namespace tandem::trace {

/// Returns one of these files by its name without extension:
///   page     content of the body
///   style    layout, and the colours of both themes
/// and JavaScript, in this order in one script element:
///   model    decodes the data; lanes, searches, statistics
///   layout   rows, groups and the time scale
///   paint    draws rows and the time axis
///   marks    draws arrows, critical path and selection
///   find     search, measuring, order of PEs
///   main     events, tooltip, keyboard, start
std::string_view report_file(std::string_view name);

}  // namespace tandem::trace
