#pragma once
/// The figures that a machine model has: path, unit, allowed range, meaning and place in `Machine`, in one table that
/// the parser and `explain` share.

#include <span>
#include <string>
#include <variant>

#include "tandem/machine.h"

namespace tandem::detail {

using Tiles = std::vector<Machine::Gemm::Tile>;
using Slot = std::variant<int*, double*, bool*, Fabric*, Curve*, Tiles*>;

/// Which machines have a figure; it is refused in the files of the others.
enum class Presence { kAll, kPcie, kNic };

struct Field {
  const char* path;
  const char* unit;  ///< of the value; of a curve "x -> y"; empty for what has none
  double low;        ///< allowed are numbers from low to high (of a curve: its y), low itself where it is not 0
  double high;
  Presence presence;
  const char* meaning;
  Slot (*slot)(Machine&);
};

/// In the order of the structs of Machine; fields of a section stand together.
std::span<const Field> machine_fields();

/// What a field accepts, for error messages: "a whole number from 1 to 1024".
std::string allowed(const Field& field);

}  // namespace tandem::detail
