#pragma once
/// The files of machines/*.json, embedded by the build: the source file that defines this function is generated.

#include <span>
#include <string_view>

namespace tandem::detail {

struct BuiltinMachine {
  std::string_view name;  ///< the file's name without ".json"
  std::string_view json;  ///< its text
};

std::span<const BuiltinMachine> builtin_machines();

}  // namespace tandem::detail
