# Makes the build faster where the machine has the tools, and changes nothing in the result. A project that embeds
# Tandem makes its own choices.

# Precompiles `headers` for `target`. The headers are of the standard library and of dependencies only: a header of our
# own would rebuild everything whenever it changes.
function(tandem_precompile target)  # HEADER...
  if(PROJECT_IS_TOP_LEVEL)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# Lets `target` use the precompiled headers of `owner`, which is compiled with the same options.
function(tandem_reuse_precompiled target owner)
  if(PROJECT_IS_TOP_LEVEL)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache handles precompiled headers only with the first setting; its manual says why it is not the default. With the
  # others a source that is not in the cache costs no second preprocessing, and headers are hashed once.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 CCACHE_INODECACHE=1
                                  "${TANDEM_CCACHE}")
endif()

# The garbage collection of g++ takes 4 to 13 % of the time. With this limit, in KB, it begins in no source of ours.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1000000>)
endif()

find_program(TANDEM_MOLD mold)
if(TANDEM_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold TANDEM_LINKS_WITH_MOLD)
  if(TANDEM_LINKS_WITH_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
