# The CUDA backend, on top of the library: `cmake -DTANDEM_CUDA=ON`. A library of its own, so that builds without a GPU
# waits for nvcc.
option(TANDEM_CUDA "Build the CUDA backend (needs nvcc 12.8 or newer)" OFF)
set(TANDEM_CUDA_ARCHITECTURES "90a" CACHE STRING "GPUs to compile for, as in sm_90a; several separated by semicolons")
if(NOT TANDEM_CUDA)
  return()
endif()

include(CudaLanguage)
find_package(CUDAToolkit REQUIRED)

file(GLOB_RECURSE kernel_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cuda/*.cu")
tandem_cuda_kernels(tandem_cuda_kernels ${kernel_sources} ${gpu_kernel_sources} ${gpu_step_sources}
                    ARCHITECTURES ${TANDEM_CUDA_ARCHITECTURES})
# A persistent GEMM leaves 1,024 registers an SM: one warp of 32 each.
set_property(SOURCE ${gpu_step_sources} APPEND PROPERTY COMPILE_OPTIONS -maxrregcount=32)

# The fused GEMM is Hopper's, whatever else is compiled for; on other GPUs it says so. Each instantiation of CUTLASS's
# templates takes a core for 40 seconds.
include(Cutlass)
file(GLOB_RECURSE gemm_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/gemm/hopper/instances/*.cu")
tandem_cuda_kernels(tandem_cuda_gemms ${gemm_sources} ARCHITECTURES 90a)
target_include_directories(tandem_cuda_gemms SYSTEM PRIVATE "${cutlass_include}")
target_compile_options(tandem_cuda_gemms PRIVATE --expt-relaxed-constexpr)

file(GLOB_RECURSE host_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cuda/*.cpp" "${PROJECT_SOURCE_DIR}/src/gemm/hopper/*.cpp")
add_library(tandem_cuda STATIC ${host_sources} "${gpu_register_source}" $<TARGET_OBJECTS:tandem_cuda_kernels> $<TARGET_OBJECTS:tandem_cuda_gemms>)
add_library(tandem::cuda ALIAS tandem_cuda)
tandem_own_code(tandem_cuda)
target_link_libraries(tandem_cuda PUBLIC tandem::tandem CUDA::cudart_static PRIVATE fmt::fmt ${CMAKE_DL_LIBS})
# Programs that name no function of this library get its GPUs too.
target_link_options(tandem_cuda INTERFACE "LINKER:--undefined=tandem_gpu_devices")
# For programs that compile kernels with tandem/advanced/cuda_kernel.cuh.
target_compile_options(tandem_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
set_target_properties(tandem_cuda PROPERTIES ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# The tool runs on GPUs too.
if(TARGET tandem-cli)
  file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/tandem/gpu/*.cpp")
  target_sources(tandem-cli PRIVATE ${cli_sources})
  string(REPLACE ";" ", sm_" architectures "${TANDEM_CUDA_ARCHITECTURES}")
  target_compile_definitions(tandem-cli PRIVATE TANDEM_CUDA_BUILD="sm_${architectures}")
  target_link_libraries(tandem-cli PRIVATE tandem::cuda)
endif()

set_target_properties(tandem_cuda tandem_cuda_kernels tandem_cuda_gemms PROPERTIES POSITION_INDEPENDENT_CODE ON)

# Plain programs, for machines with GPUs: see scripts/gpu_check.
if(TANDEM_TESTS)
  file(GLOB programs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/gpu/*_gpu_check.cpp"
       "${PROJECT_SOURCE_DIR}/tests/gpu/*/*_gpu_check.cpp" "${PROJECT_SOURCE_DIR}/bench/gpu/*_gpu.cpp"
       "${PROJECT_SOURCE_DIR}/bench/gpu/*_bench.cpp")
  foreach(source IN LISTS programs)
    cmake_path(GET source STEM name)
    cmake_path(REMOVE_EXTENSION source OUTPUT_VARIABLE stem)
    file(GLOB parts CONFIGURE_DEPENDS "${stem}*.cpp")
    add_executable(${name} ${parts})
    if(source MATCHES "/bench/gpu/" AND NOT name MATCHES "^nccl_interface_")  # which measure as the tool does
      target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tools/tandem/gpu/measure/timed_calls.cpp")
    endif()
    if(name STREQUAL operators_bench)
      target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tools/tandem/gpu/measure/nccl.cpp")
      configure_file("${PROJECT_SOURCE_DIR}/bench/gpu/operators_torch.py" "${PROJECT_BINARY_DIR}/gpu/operators_torch.py" COPYONLY)
    endif()
    tandem_own_code(${name})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/bench")
    if(name STREQUAL c_api_gpu_check)  # as a program in C
      target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
      target_link_libraries(${name} PRIVATE tandem_c CUDA::cudart_static)
    elseif(name MATCHES "^nccl_interface_")  # open a library with NCCL's interface
      target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
      target_link_libraries(${name} PRIVATE nlohmann_json::nlohmann_json CUDA::cudart_static ${CMAKE_DL_LIBS})
    else()
      target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/in_threads.cpp")
      target_link_libraries(${name} PRIVATE tandem::cuda fmt::fmt nlohmann_json::nlohmann_json)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/gpu")
  endforeach()

  # The grouped GEMM for bench/python/grouped_gemm.py, with its function alone.
  add_library(grouped_gemm SHARED "${PROJECT_SOURCE_DIR}/bench/gpu/grouped_gemm_library.cpp")
  tandem_own_code(grouped_gemm)
  target_link_libraries(grouped_gemm PRIVATE tandem::cuda fmt::fmt)
  target_link_options(grouped_gemm PRIVATE "LINKER:--exclude-libs,ALL")
  set_target_properties(grouped_gemm PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

  # The litmus and stress tests have kernels of their own.
  tandem_cuda_kernels(litmus_gpu_kernels "${PROJECT_SOURCE_DIR}/tests/gpu/memory/litmus_device.cu"
                      ARCHITECTURES ${TANDEM_CUDA_ARCHITECTURES})
  target_include_directories(litmus_gpu_kernels PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  foreach(name litmus_gpu_check stress_gpu_check experts_stress_gpu_check)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:litmus_gpu_kernels>)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  endforeach()
endif()
