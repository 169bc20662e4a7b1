#pragma once
/// Text for JSON, HTML and people.

#include <string>
#include <string_view>

#include "tandem/timeline.h"

namespace tandem::trace {

/// A JSON string with its quotes. Plain ASCII but for valid UTF-8, which stays; bytes that are not UTF-8 become U+FFFD.
/// `<`, `>` and `&` are written as \u escapes, so that the text can stand inside an HTML script element.
std::string json_string(std::string_view text);

/// Escaped for HTML and XML text and for attributes in double quotes.
std::string xml_text(std::string_view text);

/// Microseconds with all picoseconds, exactly: "12.345678", "-0.5", "3".
std::string microseconds(Time time);

/// Short for people: "850 ps", "12.3 ns", "482 us", "1.25 ms".
std::string short_time(Time time);

/// "predicted with the machine model h200x4", "measured on h200x2"; without a machine's name the one word.
std::string origin(const Timeline& timeline);

}  // namespace tandem::trace
