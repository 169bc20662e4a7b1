# cmake -DOUTPUT=FILE.cpp -DMACHINES=DIR -P EmbedMachines.cmake
#
# Writes a source file that holds every DIR/*.json, so that a program finds the machine models wherever it runs.
# Bytes, not string literals: no limit on length and nothing in a file can end the literal.
file(GLOB files "${MACHINES}/*.json")
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
  string(APPEND arrays "constexpr char machine_${count}[] = {${bytes}};\n")
  string(APPEND entries "    {\"${name}\", {machine_${count}, sizeof machine_${count}}},\n")
  math(EXPR count "${count} + 1")
endforeach()

# An array of no elements is not C++.
if(count GREATER 0)
  set(table "constexpr BuiltinMachine machines[] = {\n${entries}};\n")
  set(result "machines")
else()
  set(table "")
  set(result "{}")
endif()

file(WRITE "${OUTPUT}" "// Made by cmake/EmbedMachines.cmake from machines/*.json.
#include \"model/builtin_machines.h\"

namespace tandem::detail {
namespace {
${arrays}${table}}  // namespace

std::span<const BuiltinMachine> builtin_machines() { return ${result}; }

}  // namespace tandem::detail
")
