#pragma once
/// The figures of a machine model in one table: path, unit, allowed range, meaning and member of `Machine`. The parser
/// and `explain` share it.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tandem/machine.h"

namespace tandem::detail {

using Tiles = std::vector<Machine::Gemm::Tile>;
using Slot = std::variant<int*, double*, bool*, Fabric*, Curve*, Tiles*>;

/// The machines that have a figure. Files of other machines must not contain it.
enum class Presence { kAll, kPcie, kNic };

struct Field {
  const char* path;
  const char* unit;  ///< unit of the value, "x -> y" for a curve, empty if it has none
  double low;        ///< allowed: low to high (for a curve: of y); without low itself if it is 0
  double high;
  Presence presence;
  const char* meaning;
  Slot (*slot)(Machine&);
};

/// Returns the fields in the order of the structs of Machine. Fields of one section are neighbours.
std::span<const Field> machine_fields();

/// Returns the processors of this name.
std::optional<Processor> processor_named(std::string_view name);
/// The names that it knows, for error messages.
inline constexpr const char* kProcessorNames = "\"gpu\" or \"cpu\"";

/// Returns the values that a field accepts, for error messages: "a whole number from 1 to 1024".
std::string allowed(const Field& field);

}  // namespace tandem::detail
