#pragma once
/// Where in the kernel's source an operation stands.
///
/// Every operation of the simulator's block ends with a defaulted `Site`, so that checkers and reports can name file
/// and line without the author typing anything. (`std::source_location` is missing from clang 14 with libstdc++ 12.)

namespace tandem {

struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

}  // namespace tandem
