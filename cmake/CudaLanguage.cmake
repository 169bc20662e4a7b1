# Enables CUDA as a language. Files that compile kernels include it.
set(CMAKE_CUDA_ARCHITECTURES OFF)  # given by -gencode below
enable_language(CUDA)
if(TANDEM_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
endif()

# CMake 3.25 does not know this nvcc's C++20: it takes the option from here, and would add its own default otherwise.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")

# An object library of device code.
function(tandem_cuda_kernels name)  # [EXCLUDE_FROM_ALL] SOURCE... ARCHITECTURES ARCHITECTURE...
  cmake_parse_arguments(PARSE_ARGV 1 kernels "" "" "ARCHITECTURES")
  add_library(${name} OBJECT ${kernels_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
  target_compile_definitions(${name} PRIVATE NDEBUG)
  set_target_properties(${name} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON)
  foreach(architecture IN LISTS kernels_ARCHITECTURES)
    target_compile_options(${name} PRIVATE "SHELL:-gencode arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  if(TANDEM_WERROR)
    # nvcc only warns where device code calls a host function.
    target_compile_options(${name} PRIVATE "SHELL:-Werror all-warnings")
  endif()
endfunction()
