# The CUDA backend, on top of the library: `cmake -DTANDEM_CUDA=ON`. A library of its own, so that nobody who works without a GPU
# waits for nvcc.
option(TANDEM_CUDA "Build the CUDA backend (needs nvcc 12.8 or newer)" OFF)
set(TANDEM_CUDA_ARCHITECTURES "90a" CACHE STRING "GPUs to compile for, as in sm_90a; several separated by semicolons")
if(NOT TANDEM_CUDA)
  return()
endif()

set(CMAKE_CUDA_ARCHITECTURES OFF)  # given by -gencode below
enable_language(CUDA)
if(TANDEM_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
endif()
find_package(CUDAToolkit REQUIRED)

file(GLOB kernel_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cuda/*.cu")
add_library(tandem_cuda_kernels OBJECT ${kernel_sources})
target_include_directories(tandem_cuda_kernels PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(tandem_cuda_kernels PRIVATE NDEBUG)
# CMake 3.25 does not know this nvcc's C++20: it takes the option from here, and would add its own default otherwise.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set_target_properties(tandem_cuda_kernels PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON)
foreach(architecture IN LISTS TANDEM_CUDA_ARCHITECTURES)
  target_compile_options(tandem_cuda_kernels
                         PRIVATE "SHELL:-gencode arch=compute_${architecture},code=sm_${architecture}")
endforeach()
if(TANDEM_WERROR)
  # nvcc only warns where device code calls a host function.
  target_compile_options(tandem_cuda_kernels PRIVATE "SHELL:-Werror all-warnings")
endif()

file(GLOB host_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cuda/*.cpp")
add_library(tandem_cuda STATIC ${host_sources} $<TARGET_OBJECTS:tandem_cuda_kernels>)
add_library(tandem::cuda ALIAS tandem_cuda)
tandem_own_code(tandem_cuda)
target_link_libraries(tandem_cuda PUBLIC tandem::tandem CUDA::cudart_static PRIVATE fmt::fmt)
set_target_properties(tandem_cuda PROPERTIES ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# The C API, for programs that load it at run time: one shared library that shows nothing but its own functions.
set_target_properties(tandem tandem_cuda tandem_cuda_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_options(tandem PRIVATE -fno-semantic-interposition)  # calls stay as direct as without
file(GLOB c_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bindings/c/*.cpp")
add_library(tandem_c SHARED ${c_sources})
tandem_own_code(tandem_c)
target_link_libraries(tandem_c PRIVATE tandem::cuda fmt::fmt)
target_link_options(tandem_c PRIVATE -Wl,-Bsymbolic "-Wl,--version-script=${PROJECT_SOURCE_DIR}/bindings/c/exports.map")
set_target_properties(tandem_c PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# Plain programs, for machines with GPUs: see scripts/gpu_check.
if(TANDEM_TESTS)
  foreach(source tests/gpu/collectives_gpu_check tests/gpu/processes_gpu_check bench/gpu/collectives_gpu)
    cmake_path(GET source FILENAME name)
    file(GLOB parts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${source}*.cpp")
    add_executable(${name} ${parts})
    tandem_own_code(${name})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/bench")
    target_link_libraries(${name} PRIVATE tandem::cuda fmt::fmt nlohmann_json::nlohmann_json)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/gpu")
  endforeach()
endif()
