# Where nvcc is present, the test `cuda_headers` compiles every portable kernel as device code with a stub block. It finds
# code that a GPU could not take. tests/cuda/*.cu compile the operations of the block itself.
file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cuda/*.cu")
if(NOT cuda_sources OR TANDEM_SANITIZE)
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  return()
endif()
set(CMAKE_CUDA_ARCHITECTURES OFF)  # given by -gencode below
enable_language(CUDA)
if(TANDEM_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
endif()

# CMake 3.25 does not know nvcc's C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")

# Built by its test, not by default, so that work on the simulator does not wait for nvcc.
function(tandem_cuda_compile_test name)  # SOURCE... ARCHITECTURES ARCHITECTURE...
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "ARCHITECTURES")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${test_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
                                             "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${name} PRIVATE NDEBUG)
  set_target_properties(${name} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON)
  foreach(architecture IN LISTS test_ARCHITECTURES)
    target_compile_options(${name} PRIVATE "SHELL:-gencode arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  if(TANDEM_WERROR)
    # nvcc only warns where device code calls a host function.
    target_compile_options(${name} PRIVATE "SHELL:-Werror all-warnings")
  endif()
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} --build "${PROJECT_BINARY_DIR}" --target ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${hangs_after_s} RESOURCE_LOCK cuda_compile)
endfunction()

tandem_cuda_compile_test(cuda_headers ${cuda_sources} ${gpu_compile_sources} ARCHITECTURES 90a)
# Separable: the stub block is declared, not defined.
set_target_properties(cuda_headers PROPERTIES CUDA_SEPARABLE_COMPILATION ON)

# The backend's own block, in one object for every architecture that it is meant for.
file(GLOB architecture_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cuda/architectures/*.cu")
tandem_cuda_compile_test(cuda_architectures ${architecture_sources} ARCHITECTURES 80 90a 100)
