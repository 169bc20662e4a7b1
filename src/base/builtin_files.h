#pragma once
/// Files embedded by the build: the source files that define these functions are generated (cmake/EmbedFiles.cmake).

#include <span>
#include <string_view>

namespace tandem::detail {

struct BuiltinFile {
  std::string_view name;  ///< the file's name without its extension
  std::string_view text;
};

std::span<const BuiltinFile> builtin_machines();         ///< machines/*.json
std::span<const BuiltinFile> builtin_selections();       ///< machines/selection/*.json
std::span<const BuiltinFile> builtin_operator_tables();  ///< machines/operators/*.json
std::span<const BuiltinFile> report_files();             ///< src/trace/report/*

}  // namespace tandem::detail
