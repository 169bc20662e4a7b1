# Installs library, headers, tool, machine models and the package that `find_package(tandem)` reads.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tandem")

install(TARGETS tandem EXPORT tandem-targets)
if(TARGET tandem_cuda)
  set_target_properties(tandem_cuda PROPERTIES EXPORT_NAME cuda)
  install(TARGETS tandem_cuda EXPORT tandem-targets)
endif()
# Programs in C need nothing else.
set_target_properties(tandem_c PROPERTIES EXPORT_NAME c)
install(TARGETS tandem_c EXPORT tandem-c-targets)
install(EXPORT tandem-c-targets NAMESPACE tandem:: DESTINATION "${package_dir}")
# Programs load it in place of NCCL, and none is linked with it.
install(TARGETS tandem_nccl)
install(DIRECTORY "${PROJECT_BINARY_DIR}/lib/tandem/nccl" DESTINATION "${CMAKE_INSTALL_LIBDIR}/tandem")
if(TARGET tandem-cli)
  install(TARGETS tandem-cli)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/machines" DESTINATION "${CMAKE_INSTALL_DATADIR}/tandem"
        FILES_MATCHING PATTERN "*.json")

install(EXPORT tandem-targets NAMESPACE tandem:: DESTINATION "${package_dir}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/tandem-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/tandem-config.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tandem-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tandem-config.cmake" "${PROJECT_BINARY_DIR}/tandem-config-version.cmake"
        DESTINATION "${package_dir}")
