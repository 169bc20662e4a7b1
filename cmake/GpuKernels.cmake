# The library's kernels for GPUs. The markers of src/base/gpu_kernel.h name them in their own headers, from which
# tandem_write_gpu_kernels writes the sources that compile and register them.

# Reads a header's markers into texts in the caller's scope: `kernels`, `profiled` and `steps` register kernels, a line each;
# `compiled` instantiates them against the block's contract.
macro(tandem_read_gpu_markers root header)
  set(kernels "")
  set(profiled "")
  set(steps "")
  set(compiled "")
  file(STRINGS "${root}/${header}" lines REGEX "^(namespace tandem|TANDEM_GPU_|TANDEM_SIMULATED_)")
  foreach(line IN LISTS lines)
    if(line MATCHES "^namespace (tandem[a-z_:]*) {")
      set(namespace "${CMAKE_MATCH_1}")
      continue()
    elseif(line MATCHES "^TANDEM_GPU_KERNEL\\(([^,()]+), ([^,()]+)\\)")
      string(APPEND kernels "  cuda::register_kernel<${CMAKE_MATCH_1}, ${CMAKE_MATCH_2}>();\n")
      string(APPEND profiled "  cuda::register_profiled_kernel<${CMAKE_MATCH_1}, ${CMAKE_MATCH_2}>();\n")
    elseif(line MATCHES "^TANDEM_GPU_KERNELS\\(([^,()]+), ([^,()]+)\\)")
      string(APPEND kernels "  cuda::register_types<${CMAKE_MATCH_1}, ${CMAKE_MATCH_2}>();\n")
      string(APPEND profiled "  cuda::register_profiled_types<${CMAKE_MATCH_1}, ${CMAKE_MATCH_2}>();\n")
    elseif(line MATCHES "^TANDEM_GPU_OUTPUT_KERNELS\\(([^,()]+), ([^,()]+)\\)")
      string(APPEND kernels "  cuda::register_outputs<${CMAKE_MATCH_1}, ${CMAKE_MATCH_2}>();\n")
    elseif(line MATCHES "^TANDEM_GPU_STEP\\(([^,()]+)\\)")
      string(APPEND steps "  cuda::register_kernel<${CMAKE_MATCH_1}, 32>();\n")
    elseif(NOT line MATCHES "^TANDEM_SIMULATED_KERNELS\\(([^,()]+)\\)")
      message(FATAL_ERROR "${header}: cannot read '${line}': src/base/gpu_kernel.h shows the markers")
    endif()
    set(name "${namespace}::${CMAKE_MATCH_1}")
    if(line MATCHES "^TANDEM_GPU_OUTPUT_KERNELS")
      string(APPEND compiled "TANDEM_COMPILE(${name}<float, float>);\nTANDEM_COMPILE(${name}<bf16, fp8_e4m3>);\n")
    elseif(line MATCHES "^TANDEM_[A-Z]+_KERNELS")
      string(APPEND compiled "TANDEM_COMPILE(${name}<float>);\nTANDEM_COMPILE(${name}<bf16>);\n"
                             "TANDEM_COMPILE(${name}<std::int8_t>);\n")
    else()
      string(APPEND compiled "TANDEM_COMPILE(${name});\n")
    endif()
  endforeach()
endmacro()

# Writes into `folder`, from the headers below `root`:
#   KERNELS   one source for each header with kernels, so that they compile in parallel
#   STEPS     one source for each header with steps, which are compiled for fewer registers
#   REGISTER  the source that calls all of those
#   COMPILE   one source for each layer, with all its kernels against the block's contract
# The named variables receive the paths. Sources that would not change stay as they are.
function(tandem_write_gpu_kernels folder root)  # KERNELS var STEPS var REGISTER var COMPILE var HEADERS header...
  cmake_parse_arguments(PARSE_ARGV 2 out "" "KERNELS;STEPS;REGISTER;COMPILE" "HEADERS")
  set(templates "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/gpu_kernels")
  set(layers "")
  foreach(header IN LISTS out_HEADERS)
    tandem_read_gpu_markers("${root}" "${header}")
    if(compiled STREQUAL "")
      continue()
    endif()
    string(REGEX MATCH "^[^/]+" layer "${header}")
    list(APPEND layers "${layer}")
    string(APPEND includes_of_${layer} "#include \"${header}\"\n")
    string(APPEND compiled_of_${layer} "${compiled}")
    string(REGEX REPLACE "\\.h$" "" stem "${header}")
    string(REPLACE "/" "_" stem "${stem}")
    foreach(part kernels steps)
      if("${${part}}" STREQUAL "")
        continue()
      endif()
      set(name "${stem}_${part}")
      set(usual "${${part}}")
      # The operators' kernels have no profiled form: timelines show their begin and end.
      if(NOT layer STREQUAL "collectives")
        set(profiled "")
      endif()
      configure_file("${templates}/kernels.cu.in" "${folder}/${name}.cu" @ONLY)
      list(APPEND sources_of_${part} "${folder}/${name}.cu")
      string(APPEND declarations "namespace ${namespace} {\nvoid register_${name}();\n"
                                 "void register_profiled_${name}();\n}\n")
      string(APPEND calls "    ${namespace}::register_${name}();\n")
      string(APPEND profiled_calls "    ${namespace}::register_profiled_${name}();\n")
    endforeach()
  endforeach()
  configure_file("${templates}/register.cpp.in" "${folder}/register.cpp" @ONLY)
  list(REMOVE_DUPLICATES layers)
  foreach(layer IN LISTS layers)
    set(includes "${includes_of_${layer}}")
    set(compiled "${compiled_of_${layer}}")
    configure_file("${templates}/compile.cu.in" "${folder}/compile/${layer}.cu" @ONLY)
    list(APPEND sources_to_compile "${folder}/compile/${layer}.cu")
  endforeach()
  set(${out_KERNELS} "${sources_of_kernels}" PARENT_SCOPE)
  set(${out_STEPS} "${sources_of_steps}" PARENT_SCOPE)
  set(${out_REGISTER} "${folder}/register.cpp" PARENT_SCOPE)
  set(${out_COMPILE} "${sources_to_compile}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)  # tests/scripts/gpu_kernels_test
  return()
endif()
file(GLOB_RECURSE headers RELATIVE "${PROJECT_SOURCE_DIR}/src" CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/collectives/*.h"
     "${PROJECT_SOURCE_DIR}/src/gemm/*.h" "${PROJECT_SOURCE_DIR}/src/operators/*.h" "${PROJECT_SOURCE_DIR}/src/tune/*.h")
list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/src/" OUTPUT_VARIABLE paths)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${paths})
tandem_write_gpu_kernels("${PROJECT_BINARY_DIR}/generated/gpu_kernels" "${PROJECT_SOURCE_DIR}/src" HEADERS ${headers}
                         KERNELS gpu_kernel_sources STEPS gpu_step_sources REGISTER gpu_register_source
                         COMPILE gpu_compile_sources)
