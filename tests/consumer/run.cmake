# cmake -DBUILD=build/release -DSOURCE=tests/consumer -DCXX=g++ -P run.cmake
#
# Installs the build into a folder of its own, builds the consumer project and the users' example against that folder and
# runs them, and the installed tool too.
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
# The example that users copy, against the same package; with the CUDA backend nvcc compiles its kernel, too.
step(${CMAKE_COMMAND} -S "${SOURCE}/../../examples/checked_kernel" -B "${work}/example" -G Ninja
     "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_PREFIX_PATH=${work}/prefix" -DCMAKE_BUILD_TYPE=Release)
step(${CMAKE_COMMAND} --build "${work}/example")
step("${work}/example/checked_kernel")
step("${work}/example/simulated")
if(EXISTS "${work}/prefix/bin/tandem")
  step("${work}/prefix/bin/tandem" machines)
endif()
