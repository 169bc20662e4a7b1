# Adds the test LAYER.without_NAME: a form of test_LAYER with one changed source. SED changes SOURCE of src/LAYER, and CASE is
# the GoogleTest case that has to fail.
function(tandem_mutant layer name source sed case)
  set(mutant "${CMAKE_CURRENT_BINARY_DIR}/${layer}/without_${name}.cpp")
  set(original "${PROJECT_SOURCE_DIR}/src/${layer}/${source}.cpp")
  add_custom_command(
    OUTPUT "${mutant}"
    COMMAND sed -E "${sed}" "${original}" > "${mutant}"
    COMMAND sh -c "! cmp -s \"$0\" \"$1\" || ! echo \"$1: the change fits nowhere\"" "${original}" "${mutant}"
    DEPENDS "${original}"
    VERBATIM)
  set(target test_${layer}_without_${name})
  add_executable(${target} "${mutant}" $<TARGET_OBJECTS:test_${layer}>)
  tandem_own_code(${target})
  target_link_libraries(${target} PRIVATE tandem_test_data)
  tandem_reuse_precompiled(${target} tandem_test_base)
  tandem_test_optimisation(${target} tandem_test_base)
  add_test(NAME ${layer}.without_${name} COMMAND ${target} "--gtest_filter=${case}" --gtest_fail_fast)
  set_tests_properties(${layer}.without_${name} PROPERTIES TIMEOUT ${hangs_after_s}
                                                           ENVIRONMENT TANDEM_TEST_AWAIT_S=2
                                                           PASS_REGULAR_EXPRESSION "FAILED TEST")
endfunction()
