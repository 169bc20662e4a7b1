#pragma once
/// The figures of an operator table: their paths in JSON, units and limits.

#include <span>
#include <variant>

#include "operators/resolve/table/operator_table.h"

namespace tandem::ops {

/// The place of a figure.
using Slot = std::variant<int*, Size*, double*>;

struct Field {
  const char* path;
  const char* unit;  ///< empty for plain numbers
  double low, high;
  Slot (*slot)(OperatorTable&);
};

/// Returns all figures, in the order of the documentation.
std::span<const Field> operator_table_fields();

}  // namespace tandem::ops
