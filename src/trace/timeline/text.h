#pragma once
/// Text for JSON, HTML and people.

#include <string>
#include <string_view>

#include "tandem/timeline.h"

namespace tandem::trace {

/// Returns a JSON string with its quotes: ASCII, and valid UTF-8 unchanged. Other bytes become U+FFFD. `<`, `>` and `&`
/// become \u escapes, so that the text is safe inside an HTML script element.
std::string json_string(std::string_view text);

/// Escapes text for HTML and XML, also for attributes in double quotes.
std::string xml_text(std::string_view text);

/// Returns exact microseconds with all picoseconds: "12.345678", "-0.5", "3".
std::string microseconds(Time time);

/// Returns a short time for people: "850 ps", "12.3 ns", "482 us", "1.25 ms".
std::string short_time(Time time);

/// Returns "predicted with the machine model h200x4" or "measured on h200x2"; without a machine's name only the first
/// word.
std::string origin(const Timeline& timeline);

}  // namespace tandem::trace
