# Options of every target of our own: warnings, sanitizers, the private include root.

if(TANDEM_SANITIZE)
  add_compile_options(-fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TANDEM_SANITIZE})
endif()

# Marks `target` as our own code: warnings (as errors with TANDEM_WERROR), and includes by their path below src/, or
# below the project for tools.
function(tandem_own_code target)
  # Without contraction a*b+c rounds alike on every processor, so that results do not depend on the machine.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off)
  if(TANDEM_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
endfunction()

# Compiles `target`, whose time goes by in the library, with -O1 in release builds: in two thirds of the time of -O2.
function(tandem_light_code target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# Compiles the sources of each folder of `target` as one, which reads their headers once. Sources with options of their own
# stay apart. Two sources of a folder cannot give one name to two things, in anonymous namespaces either. Folders that are
# named after `target`, relative to the caller's, are compiled as one folder.
function(tandem_compile_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${path}" NORMALIZE is_generated)
    if(NOT is_generated)
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      cmake_path(GET path PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "${folder}" group)
      set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${group}")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(ARGN)
    tandem_compile_together(${target} ${ARGN})
  endif()
endfunction()

# Compiles some folders of such a target, relative to the caller's, as one folder.
function(tandem_compile_together target)  # FOLDER...
  set(folders)
  foreach(folder IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH folder NORMALIZE)
    string(REGEX REPLACE "/$" "" folder "${folder}")
    list(APPEND folders "${folder}")
  endforeach()
  list(GET ARGN 0 first)
  string(MAKE_C_IDENTIFIER "${first}_and_others" group)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    if(folder IN_LIST folders)
      set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${group}")
    endif()
  endforeach()
endfunction()
