# Settings that every target of the project shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

# gradsync_target(NAME): warnings, include root and sanitizers.
function(gradsync_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
  # -ffp-contract=off: whether a*b+c is fused must not depend on the optimizer's mood; where PyTorch
  # fuses, the code calls std::fma.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                         -ffp-contract=off)
  if(GRADSYNC_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(GRADSYNC_SANITIZE)
    # Instrumented code confuses GCC's analysis of what is initialized: std::regex would not compile.
    target_compile_options(${name} PUBLIC -fsanitize=${GRADSYNC_SANITIZE} -fno-omit-frame-pointer
                                          -Wno-maybe-uninitialized)
    target_link_options(${name} PUBLIC -fsanitize=${GRADSYNC_SANITIZE})
    if(GRADSYNC_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # ThreadSanitizer does not see fences, and GCC says so. Asio has some; what orders its handlers
      # are the locks of its queues.
      target_compile_options(${name} PUBLIC -Wno-tsan)
    endif()
  endif()
endfunction()

# gradsync_program(NAME): the settings of a target that is not installed (the command, tests, benchmarks). It
# may include its own headers by their path from the root: "tools/command/terminal.hpp".
function(gradsync_program name)
  gradsync_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
endfunction()

# gradsync_library(NAME SOURCES... [HEADERS HEADERS...]): the static library gradsync_NAME, alias
# gradsync::NAME, of the current folder; its headers are all in and below the folder unless they are
# listed. They are entered as such, so that the target all_verify_interface_header_sets compiles each
# of them alone (a test runs it).
function(gradsync_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS")
  add_library(gradsync_${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  add_library(gradsync::${name} ALIAS gradsync_${name})
  gradsync_target(gradsync_${name})
  if(NOT arg_HEADERS)
    file(GLOB_RECURSE arg_HEADERS CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.hpp")
  endif()
  set(headers)
  foreach(header IN LISTS arg_HEADERS)
    cmake_path(ABSOLUTE_PATH header)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    list(APPEND headers "${header}")
  endforeach()
  # include/gradsync/ holds symbolic links to the folders, so headers are spelled as they are once installed.
  list(TRANSFORM headers REPLACE "^engine/" "")
  list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/include/gradsync/")
  target_sources(gradsync_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
endfunction()

# gradsync_simulating_program(NAME): an executable in which simulations run. SimGrid makes and frees
# a dozen small objects a flow; with jemalloc that is up to half as fast again as with libc's malloc.
# The sanitizers have an allocator of their own.
function(gradsync_simulating_program name)
  if(JEMALLOC_FOUND AND NOT GRADSYNC_SANITIZE)
    # Nothing refers to it by name, so the linker is told to keep it.
    target_link_libraries(${name} PRIVATE
      "-Wl,--push-state,--no-as-needed" PkgConfig::JEMALLOC "-Wl,--pop-state")
  endif()
endfunction()
