# cmake -DOUTPUT=FILE.cpp -DFOLDER=DIR -DPATTERN=GLOB -DFUNCTION=NAME -P EmbedFiles.cmake
#
# Writes a source file that holds every DIR/GLOB and a function that returns them, so that a program finds its files wherever it
# runs.
# Bytes, not string literals: no limit on length and nothing in a file can end the literal.
file(GLOB files "${FOLDER}/${PATTERN}")
list(SORT files)

set(arrays "")
set(entries "")
set(count 0)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WLE)
  file(READ "${file}" bytes HEX)
  if(bytes STREQUAL "")
    message(FATAL_ERROR "${file} is empty")
  endif()
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char file_${count}[] = {${bytes}};\n")
  string(APPEND entries "    {\"${name}\", {file_${count}, sizeof file_${count}}},\n")
  math(EXPR count "${count} + 1")
endforeach()

# An array of no elements is not C++.
if(count GREATER 0)
  set(table "constexpr BuiltinFile files[] = {\n${entries}};\n")
  set(result "files")
else()
  set(table "")
  set(result "{}")
endif()

file(WRITE "${OUTPUT}" "// Made by cmake/EmbedFiles.cmake.
#include \"base/builtin_files.h\"

namespace tandem::detail {
namespace {
${arrays}${table}}  // namespace

std::span<const BuiltinFile> ${FUNCTION}() { return ${result}; }

}  // namespace tandem::detail
")
