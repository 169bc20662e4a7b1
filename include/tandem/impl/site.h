#pragma once
/// The place of an operation in the kernel's source.
///
/// Every operation of the simulator's block ends with a defaulted `Site`. Checkers and reports can thus name file and
/// line without work for the author. (`std::source_location` is missing from clang 14 with libstdc++ 12.)

namespace tandem {

struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

}  // namespace tandem
