# Where nvcc is present, the test `cuda_headers` compiles tests/cuda/*.cu: each puts portable kernels through the GPU
# compiler with a stub block, so that nothing a GPU could not take gets into them.
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

# Built by its test, not by default: whoever works on the simulator does not wait for nvcc.
add_library(cuda_headers OBJECT EXCLUDE_FROM_ALL ${cuda_sources})
target_include_directories(cuda_headers PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
                                                "${PROJECT_SOURCE_DIR}/tests")
target_compile_definitions(cuda_headers PRIVATE NDEBUG)
# CMake 3.25 does not know nvcc's C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
# Separable: the stub block is declared, not defined.
set_target_properties(cuda_headers PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_SEPARABLE_COMPILATION ON)
target_compile_options(cuda_headers PRIVATE "SHELL:-gencode arch=compute_90a,code=sm_90a")
if(TANDEM_WERROR)
  # nvcc only warns where device code calls a host function.
  target_compile_options(cuda_headers PRIVATE "SHELL:-Werror all-warnings")
endif()

add_test(NAME cuda_headers COMMAND ${CMAKE_COMMAND} --build "${PROJECT_BINARY_DIR}" --target cuda_headers)
set_tests_properties(cuda_headers PROPERTIES TIMEOUT 600)
