# What every target of our own is compiled with: warnings, sanitizers, the private include root.

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
