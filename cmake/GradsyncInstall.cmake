# What `cmake --install` installs, and the package that find_package(gradsync COMPONENTS ...) finds,
# both in the install tree and in this build tree. docs/install.md is the user documentation.

set(gradsync_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gradsync")
# Who runs the command needs the one, who compiles a program needs both. Installed without the choice
# of a component, it is both.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME gradsync_dev)

set(gradsync_component_names)
set(gradsync_component_tables)

# gradsync_component(NAME TARGETS LIBRARIES... [REQUIRES COMPONENTS...] [NEEDS PACKAGES...]
#                    [LINKS_WITH PACKAGES...] [WHY_NOT SENTENCE])
# Defines a component, whose target is gradsync::NAME. NEEDS: packages that its users must have;
# LINKS_WITH: packages needed only to link a static library. A pkg-config package is written
# PREFIX=MODULE, for the target PkgConfig::PREFIX. WHY_NOT: why this build does not have it.
macro(gradsync_component name)
  cmake_parse_arguments(arg "" "WHY_NOT" "TARGETS;REQUIRES;NEEDS;LINKS_WITH" ${ARGN})
  list(APPEND gradsync_component_names ${name})
  if(arg_WHY_NOT)
    string(APPEND gradsync_component_tables "set(_gradsync_${name}_why_not [[${arg_WHY_NOT}]])\n")
  else()
    if(NOT BUILD_SHARED_LIBS)
      list(APPEND arg_NEEDS ${arg_LINKS_WITH})
    endif()
    list(TRANSFORM arg_TARGETS PREPEND gradsync_)
    install(TARGETS ${arg_TARGETS} EXPORT gradsync-${name}
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT gradsync_runtime NAMELINK_COMPONENT gradsync_dev
      INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
      FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    gradsync_export(${name})
    string(APPEND gradsync_component_tables
      "set(_gradsync_${name}_requires ${arg_REQUIRES})\nset(_gradsync_${name}_needs ${arg_NEEDS})\n")
  endif()
endmacro()

function(gradsync_export name)
  install(EXPORT gradsync-${name} NAMESPACE gradsync:: DESTINATION "${gradsync_package_dir}")
  export(EXPORT gradsync-${name} NAMESPACE gradsync:: FILE "${PROJECT_BINARY_DIR}/gradsync-${name}.cmake")
endfunction()

# gradsync_pkg_config(NAME DESCRIPTION [REQUIRES MODULES...] [LINKS_WITH MODULES AND LIBRARIES...]):
# NAME.pc. Users of a shared library need not know what it links with.
function(gradsync_pkg_config name description library)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "REQUIRES;LINKS_WITH;LIBRARIES")
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
             OUTPUT_VARIABLE up)
  cmake_path(APPEND libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
  cmake_path(APPEND includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
  if(BUILD_SHARED_LIBS)
    set(arg_LINKS_WITH "")
    set(arg_LIBRARIES "")
  endif()
  string(REPLACE ";" " " requires "${arg_REQUIRES};${arg_LINKS_WITH}")
  string(REPLACE ";" " " libraries "-lgradsync_${library};${arg_LIBRARIES}")
  configure_file(cmake/gradsync.pc.in "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

# In dependency order.
gradsync_component(engine TARGETS engine LINKS_WITH Threads BLAS fmt GRADSYNC_XXHASH=libxxhash)
gradsync_component(store TARGETS store REQUIRES engine)
gradsync_component(launch TARGETS launch REQUIRES store)
gradsync_component(gloo TARGETS gloo REQUIRES store LINKS_WITH Gloo WHY_NOT "${GRADSYNC_GLOO_WHY_NOT}")
gradsync_component(nccl TARGETS cuda nccl cuda_runtime nccl_runtime REQUIRES store NEEDS fmt CUDAToolkit
  WHY_NOT "${GRADSYNC_NCCL_WHY_NOT}")
gradsync_component(testbed TARGETS testbed REQUIRES engine NEEDS nlohmann_json)
gradsync_component(rank TARGETS rank REQUIRES testbed store)
gradsync_component(gloo_rank TARGETS gloo_rank REQUIRES rank gloo WHY_NOT "${GRADSYNC_GLOO_WHY_NOT}")
gradsync_component(nccl_rank TARGETS nccl_rank REQUIRES rank nccl WHY_NOT "${GRADSYNC_NCCL_WHY_NOT}")
gradsync_component(simulator TARGETS simulator REQUIRES testbed LINKS_WITH GRADSYNC_SIMGRID=simgrid
  WHY_NOT "${GRADSYNC_SIMGRID_WHY_NOT}")

gradsync_pkg_config(gradsync "Gradient synchronization of data-parallel training" engine
  LINKS_WITH fmt libxxhash LIBRARIES ${BLAS_LIBRARIES} -pthread)
gradsync_pkg_config(gradsync-store "Rendezvous of gradsync's ranks" store REQUIRES gradsync)
if(GRADSYNC_HAVE_GLOO)
  gradsync_pkg_config(gradsync-gloo "gradsync's process group over Gloo" gloo REQUIRES gradsync-store
    LIBRARIES -lgloo)
endif()
gradsync_pkg_config(gradsync-testbed "gradsync's scenarios and results" testbed REQUIRES gradsync)
if(GRADSYNC_HAVE_SIMGRID)
  gradsync_pkg_config(gradsync-simulator "gradsync's network simulator" simulator
    REQUIRES gradsync-testbed LINKS_WITH simgrid)
endif()

# The command, as a library and as a program.
set(gradsync_command_why_not "")
set(gradsync_backends GLOO NCCL SIMGRID)
set(gradsync_backend_components gloo_rank nccl_rank simulator)
set(gradsync_command_backends)
if(NOT GRADSYNC_BUILD_COMMAND)
  set(gradsync_command_why_not "this build was configured with GRADSYNC_BUILD_COMMAND=OFF")
endif()
foreach(backend component IN ZIP_LISTS gradsync_backends gradsync_backend_components)
  if(GRADSYNC_HAVE_${backend})
    list(APPEND gradsync_command_backends ${component})
  endif()
endforeach()
gradsync_component(predict TARGETS predict REQUIRES testbed
  NEEDS fmt GRADSYNC_XXHASH=libxxhash NLOPT=nlopt_cxx WHY_NOT "${gradsync_command_why_not}")
gradsync_component(command TARGETS command command_nccl
  REQUIRES launch predict rank ${gradsync_command_backends} NEEDS fmt
  WHY_NOT "${gradsync_command_why_not}")
if(GRADSYNC_BUILD_COMMAND)
  install(TARGETS gradsync EXPORT gradsync-command
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT gradsync_runtime)
  install(DIRECTORY scenarios DESTINATION "${CMAKE_INSTALL_DATADIR}/gradsync"
    COMPONENT gradsync_runtime)
  if(NOT CMAKE_CROSSCOMPILING)
    set(pages "${PROJECT_BINARY_DIR}/tools/pages")
    set(share "${CMAKE_INSTALL_DATADIR}")
    install(FILES "${pages}/gradsync.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
      COMPONENT gradsync_runtime)
    install(FILES "${pages}/gradsync" DESTINATION "${share}/bash-completion/completions"
      COMPONENT gradsync_runtime)
    install(FILES "${pages}/gradsync.fish" DESTINATION "${share}/fish/vendor_completions.d"
      COMPONENT gradsync_runtime)
    # The first is where zsh looks, but for Debian's, which under /usr looks in the second.
    foreach(folder site-functions vendor-completions)
      install(FILES "${pages}/_gradsync" DESTINATION "${share}/zsh/${folder}"
        COMPONENT gradsync_runtime)
    endforeach()
  endif()
endif()
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT gradsync_runtime)

include(CMakePackageConfigHelpers)
configure_file(cmake/gradsyncConfig.cmake.in "${PROJECT_BINARY_DIR}/gradsyncConfig.cmake" @ONLY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gradsyncConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)  # until 1.0 a minor version may break
install(FILES "${PROJECT_BINARY_DIR}/gradsyncConfig.cmake"
              "${PROJECT_BINARY_DIR}/gradsyncConfigVersion.cmake"
  DESTINATION "${gradsync_package_dir}")

if(PROJECT_IS_TOP_LEVEL)
  include(GradsyncPackages)
endif()
