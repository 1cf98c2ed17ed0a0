# `cpack` in the build folder: the Debian packages gradsync (the command) and gradsync-dev (the library),
# and an archive of both. tools/deb_test.sh installs the first in a bare Debian and runs it.

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "gradsync's authors <gradsync@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL gradsync_runtime gradsync_dev)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# What the command links with, in the versions of the machine that builds it.
set(CPACK_DEBIAN_GRADSYNC_RUNTIME_PACKAGE_NAME gradsync)
set(CPACK_DEBIAN_GRADSYNC_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_GRADSYNC_RUNTIME_DESCRIPTION
  "The command gradsync, its scenarios and its cluster descriptions.")

# What gradsyncConfig.cmake and the files of pkg-config ask for.
set(needed libfmt-dev libxxhash-dev libopenblas-dev libnlopt-cxx-dev
  nlohmann-json3-dev pkg-config)
if(GRADSYNC_HAVE_GLOO)
  list(APPEND needed libgloo-dev)
endif()
if(GRADSYNC_HAVE_SIMGRID)
  list(APPEND needed libsimgrid-dev)
endif()
list(JOIN needed ", " needed)
set(CPACK_DEBIAN_GRADSYNC_DEV_PACKAGE_NAME gradsync-dev)
set(CPACK_DEBIAN_GRADSYNC_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_GRADSYNC_DEV_PACKAGE_DEPENDS "gradsync (= ${PROJECT_VERSION}), ${needed}")
set(CPACK_DEBIAN_GRADSYNC_DEV_DESCRIPTION
  "Headers and libraries, for find_package(gradsync) and for pkg-config.")

include(CPack)
