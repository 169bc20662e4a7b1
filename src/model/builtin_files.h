#pragma once
/// The files of machines/*.json and machines/selection/*.json, embedded by the build: the source files that define
/// these functions are generated.

#include <span>
#include <string_view>

namespace tandem::detail {

struct BuiltinFile {
  std::string_view name;  ///< the file's name without ".json"
  std::string_view json;  ///< its text
};

std::span<const BuiltinFile> builtin_machines();
std::span<const BuiltinFile> builtin_selections();

}  // namespace tandem::detail
