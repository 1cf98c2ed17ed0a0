# Settings shared by all targets of the project.

include(GNUInstallDirs)

# gradsync_language(NAME): standard C++20 without extensions, for a target that sets only the
# language.
function(gradsync_language name)
  set_target_properties(${name} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()

# gradsync_target(NAME): language, warnings, include root, message formatting and sanitizers.
function(gradsync_target name)
  gradsync_language(${name})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
  target_link_libraries(${name} PRIVATE fmt::fmt)
  # -ffp-contract=off: whether a*b+c is fused must not depend on the optimizer. Where PyTorch fuses,
  # the code calls std::fma.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                         -ffp-contract=off)
  if(GRADSYNC_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(GRADSYNC_SANITIZE)
    # Instrumentation confuses GCC's initialization analysis: std::regex would not compile.
    target_compile_options(${name} PUBLIC -fsanitize=${GRADSYNC_SANITIZE} -fno-omit-frame-pointer
                                          -Wno-maybe-uninitialized)
    target_link_options(${name} PUBLIC -fsanitize=${GRADSYNC_SANITIZE})
    if(GRADSYNC_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # ThreadSanitizer does not support fences, and GCC warns about it. Asio uses some, but the
      # locks of its queues order its handlers.
      target_compile_options(${name} PUBLIC -Wno-tsan)
    endif()
  endif()
endfunction()

# gradsync_program(NAME): settings of a target that is not installed (the command, tests,
# benchmarks). It may include its own headers by their path from the root:
# "tools/command/terminal.hpp".
function(gradsync_program name)
  gradsync_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
endfunction()

# gradsync_library(NAME [STATIC] SOURCES... [HEADERS HEADERS...] [INTERNAL PATTERNS...]): the
# library gradsync_NAME, alias gradsync::NAME, of the current folder. Shared or static according to
# BUILD_SHARED_LIBS; STATIC: always static.
#
# Its headers are those in and below the folder, unless listed. They are installed, except for paths
# that match a pattern of INTERNAL. A header that includes another library (Gloo, SimGrid, fmt,
# JSON) must be internal: installed headers need only the standard library.
function(gradsync_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STATIC" "" "HEADERS;INTERNAL")
  set(type "")
  if(arg_STATIC)
    set(type STATIC)
  endif()
  set(target gradsync_${name})
  add_library(${target} ${type} ${arg_UNPARSED_ARGUMENTS})
  add_library(gradsync::${name} ALIAS ${target})
  gradsync_target(${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})  # until 1.0 a minor version may break
  if(BUILD_SHARED_LIBS)
    set_target_properties(${target} PROPERTIES
      POSITION_INDEPENDENT_CODE ON VISIBILITY_INLINES_HIDDEN ON INSTALL_RPATH "$ORIGIN")
  endif()

  if(NOT arg_HEADERS)
    file(GLOB_RECURSE arg_HEADERS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS "*.hpp")
  endif()
  # include/gradsync/ holds symbolic links to the folders, so that headers are spelled as they are
  # once installed.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}"
             OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "^(engine|tools)(/|$)" "" folder "${folder}")
  set(spelled ${arg_HEADERS})
  list(TRANSFORM spelled PREPEND "gradsync/${folder}/")
  string(REPLACE "//" "/" spelled "${spelled}")
  set_property(TARGET ${target} PROPERTY GRADSYNC_HEADERS ${spelled})
  set_property(GLOBAL APPEND PROPERTY GRADSYNC_LIBRARIES ${target})

  foreach(pattern IN LISTS arg_INTERNAL)
    list(FILTER spelled EXCLUDE REGEX "${pattern}")
  endforeach()
  list(TRANSFORM spelled PREPEND "${PROJECT_SOURCE_DIR}/include/")
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${spelled})
endfunction()

# gradsync_simulating_program(NAME): an executable that runs simulations. SimGrid allocates and
# frees a dozen small objects per flow; jemalloc makes that up to 1.5 times as fast as libc's
# malloc. The sanitizers have their own allocator.
function(gradsync_simulating_program name)
  if(JEMALLOC_FOUND AND NOT GRADSYNC_SANITIZE)
    # No symbol refers to it, so force the linker to keep it.
    target_link_libraries(${name} PRIVATE
      "-Wl,--push-state,--no-as-needed" PkgConfig::JEMALLOC "-Wl,--pop-state")
  endif()
endfunction()
