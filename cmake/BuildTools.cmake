# Speeds the build up where the machine has the tools; changes nothing in what is built. A project that embeds
# Tandem makes its own choice.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
endif()

find_program(TANDEM_MOLD mold)
if(TANDEM_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold TANDEM_LINKS_WITH_MOLD)
  if(TANDEM_LINKS_WITH_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
