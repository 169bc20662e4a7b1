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
include(CudaLanguage)

# Built by its test, not by default, so that work on the simulator does not wait for nvcc.
function(tandem_cuda_compile_test name)  # SOURCE... ARCHITECTURES ARCHITECTURE...
  tandem_cuda_kernels(${name} EXCLUDE_FROM_ALL ${ARGN})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} --build "${PROJECT_BINARY_DIR}" --target ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${hangs_after_s} RESOURCE_LOCK cuda_compile)
endfunction()

tandem_cuda_compile_test(cuda_headers ${cuda_sources} ${gpu_compile_sources} ARCHITECTURES 90a)
# Separable: the stub block is declared, not defined.
set_target_properties(cuda_headers PROPERTIES CUDA_SEPARABLE_COMPILATION ON)

# The backend's own block, in one object for every architecture that it is meant for.
file(GLOB architecture_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cuda/architectures/*.cu")
tandem_cuda_compile_test(cuda_architectures ${architecture_sources} ARCHITECTURES 80 90a 100)
