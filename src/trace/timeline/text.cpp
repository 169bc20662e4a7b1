#include "trace/timeline/text.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <utility>

namespace tandem::trace {
namespace {

/// Returns the length of the UTF-8 sequence at the front of `text` (RFC 3629: no overlong forms, no surrogates), or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool fits = !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F);
    return fits && tail(1) && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool fits = !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second > 0x8F);
    return fits && tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

void append_json(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  if (control || c == '<' || c == '>' || c == '&') {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  } else {
    out += c;
  }
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) out += "\\ufffd";
    if (length == 1) append_json(out, text[0]);
    if (length > 1) out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

std::string xml_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text[0];
    // XML 1.0 has no control characters except tab and line ends.
    const bool unprintable =
        length == 0 || (length == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n');
    if (unprintable) {
      out += "\xEF\xBF\xBD";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string microseconds(Time time) {
  const std::uint64_t size = time < 0 ? 0 - static_cast<std::uint64_t>(time) : static_cast<std::uint64_t>(time);
  std::string out = fmt::format("{}{}", time < 0 ? "-" : "", size / kMicrosecond);
  if (const std::uint64_t fraction = size % kMicrosecond; fraction != 0) {
    out += fmt::format(".{:06}", fraction);
    while (out.back() == '0') out.pop_back();
  }
  return out;
}

std::string short_time(Time time) {
  struct Unit {
    double size;
    const char* name;
  };
  static constexpr std::array<Unit, 5> kUnits{{{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}, {1, "ps"}}};
  const double value = static_cast<double>(time);
  const double size = value < 0 ? -value : value;
  for (const Unit& unit : kUnits) {
    if (size < unit.size && unit.size > 1) continue;
    const double shown = value / unit.size;
    const int digits = unit.size == 1 || size / unit.size >= 99.95 ? 0 : size / unit.size >= 9.995 ? 1 : 2;
    return fmt::format("{:.{}f} {}", shown, digits, unit.name);
  }
  return "0";
}

std::string origin(const Timeline& timeline) {
  if (timeline.machine.empty()) return timeline.predicted ? "predicted" : "measured";
  return (timeline.predicted ? "predicted with the machine model " : "measured on ") + timeline.machine;
}

}  // namespace tandem::trace
