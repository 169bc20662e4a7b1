#pragma once
/// The parts of the report's page that do not depend on the data.

#include <string_view>

namespace tandem::trace::page {

extern const std::string_view kStyle;   ///< CSS: layout and the colours of both themes.
extern const std::string_view kMarkup;  ///< Content of the body.

// JavaScript, in this order in one script element.
extern const std::string_view kScriptModel;   ///< Decodes the data; lanes, searches, statistics.
extern const std::string_view kScriptLayout;  ///< Rows, groups and the time scale.
extern const std::string_view kScriptPaint;   ///< Draws rows and the time axis.
extern const std::string_view kScriptMarks;   ///< Draws arrows, critical path and selection.
extern const std::string_view kScriptMain;    ///< Events, tooltip, keyboard, start.

}  // namespace tandem::trace::page
