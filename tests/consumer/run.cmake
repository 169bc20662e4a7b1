# cmake -DBUILD=build/release -DSOURCE=tests/consumer -DCXX=g++ -P run.cmake
#
# Installs the build into a folder of its own. Builds the consumer project and the users' example against that folder
# and runs them. Runs the installed tool, too.
set(work "${BUILD}/consumer")
file(REMOVE_RECURSE "${work}")

macro(step)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endmacro()

step(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${work}/prefix")
step(${CMAKE_COMMAND} -S "${SOURCE}" -B "${work}/build" -G Ninja "-DCMAKE_CXX_COMPILER=${CXX}"
     "-DCMAKE_PREFIX_PATH=${work}/prefix")
step(${CMAKE_COMMAND} --build "${work}/build")
step("${work}/build/consumer")

# A project in C finds the C API, or is told what is missing.
function(expect_refusal components says)
  execute_process(COMMAND ${CMAKE_COMMAND} -S "${SOURCE}/c" -B "${work}/c-refused" --fresh -G Ninja "-DCOMPONENTS=${components}"
                          "-DCMAKE_PREFIX_PATH=${work}/prefix" RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")  # of lines that CMake breaks
  string(FIND "${text}" "${says}" at)
  if(result EQUAL 0 OR at LESS 0)
    message(FATAL_ERROR "find_package(tandem COMPONENTS ${components}) in C, instead of '${says}':\n${text}")
  endif()
endfunction()

expect_refusal("" "programs in C: find_package(tandem COMPONENTS c)")
expect_refusal("fortran" "component fortran: there are c and cuda")
step(${CMAKE_COMMAND} -S "${SOURCE}/c" -B "${work}/c" -G Ninja -DCOMPONENTS=c "-DCMAKE_PREFIX_PATH=${work}/prefix")
step(${CMAKE_COMMAND} --build "${work}/c")
step("${work}/c/consumer_in_c")
file(GLOB_RECURSE cuda_library "${work}/prefix/*/libtandem_cuda.a")
if(NOT cuda_library)
  expect_refusal("cuda" "component cuda: this package was built without TANDEM_CUDA")
endif()

# The example that users copy, against the same package; with the CUDA backend nvcc compiles its kernel, too.
step(${CMAKE_COMMAND} -S "${SOURCE}/../../examples/checked_kernel" -B "${work}/example" -G Ninja
     "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_PREFIX_PATH=${work}/prefix" -DCMAKE_BUILD_TYPE=Release)
step(${CMAKE_COMMAND} --build "${work}/example")
step("${work}/example/checked_kernel")
step("${work}/example/simulated")
if(EXISTS "${work}/prefix/bin/tandem")
  step("${work}/prefix/bin/tandem" machines)
endif()
