#include <fmt/format.h>

#include <array>

#include "tandem/error.h"
#include "tandem/layer/all_reduce_norm.h"

namespace tandem {

namespace {

template <std::size_t kCount, class T>
T parse(const char* option, const std::string& text, const std::array<T, kCount>& all) {
  std::string names;
  for (const T one : all) {
    if (text == name(one)) return one;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(one));
  }
  throw InvalidArgument(fmt::format("{}: no '{}'; there are {}", option, text, names));
}

}  // namespace

const char* name(Norm norm) {
  switch (norm) {
    case Norm::kNone:
      return "none";
    case Norm::kRms:
      return "rms";
    case Norm::kLayer:
      return "layer";
  }
  return "";
}

Norm parse_norm(const std::string& text) {
  return parse("norm", text, std::array{Norm::kNone, Norm::kRms, Norm::kLayer});
}

const char* name(Quantisation quantisation) {
  switch (quantisation) {
    case Quantisation::kNone:
      return "none";
    case Quantisation::kStatic:
      return "static";
    case Quantisation::kRow:
      return "row";
    case Quantisation::kGroup:
      return "128";
  }
  return "";
}

Quantisation parse_quantisation(const std::string& text) {
  using enum Quantisation;
  return parse("quantise", text, std::array{kNone, kStatic, kRow, kGroup});
}

}  // namespace tandem
