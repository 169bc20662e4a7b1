#include <fmt/format.h>

#include <array>

#include "tandem/error.h"
#include "tandem/layer/experts.h"

namespace tandem {

namespace {

constexpr std::array kLayouts{"sorted", "by_expert", "in_place"};
constexpr std::array kWires{"type", "quantised", "given"};
constexpr std::array kTransports{"rule", "packets", "chunks", "fused"};

template <class T, std::size_t kNames>
T parse(const char* option, const std::string& text, const std::array<const char*, kNames>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (text == names[i]) return static_cast<T>(i);
  throw InvalidArgument(fmt::format("{}: no '{}'; there are {}", option, text, fmt::join(names, ", ")));
}

}  // namespace

const char* name(ExpertLayout layout) { return kLayouts.at(static_cast<std::size_t>(layout)); }
ExpertLayout parse_expert_layout(const std::string& text) { return parse<ExpertLayout>("layout", text, kLayouts); }

const char* name(ExpertWire wire) { return kWires.at(static_cast<std::size_t>(wire)); }
ExpertWire parse_expert_wire(const std::string& text) { return parse<ExpertWire>("wire", text, kWires); }

const char* name(ExpertTransport transport) { return kTransports.at(static_cast<std::size_t>(transport)); }
ExpertTransport parse_expert_transport(const std::string& text) {
  return parse<ExpertTransport>("transport", text, kTransports);
}

}  // namespace tandem
