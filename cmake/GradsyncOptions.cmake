# Build options. An optional library that is not found is not an error unless it is required:
# everything else is built, and both the configure step and `gradsync backends` say what is missing.
#
# As a subproject (add_subdirectory, FetchContent), gradsync builds only its libraries and does not
# change the parent's flags, build type or output folders.

option(GRADSYNC_WITH_GLOO "Build the Gloo backend (real collectives on CPUs)" ON)
option(GRADSYNC_WITH_SIMGRID "Build the simulator (SimGrid)" ON)
option(GRADSYNC_WITH_NCCL "Build the NCCL backend (real GPUs; needs CUDA's compiler)"
  ${PROJECT_IS_TOP_LEVEL})
set(GRADSYNC_REQUIRE "" CACHE STRING
  "Fail where one of these cannot be built: a list of gloo, nccl, simulator")
# Machine code for Ampere, and PTX that the driver compiles for newer GPUs.
set(GRADSYNC_CUDA_ARCHITECTURES "80" CACHE STRING
  "GPUs to compile kernels for, as CMAKE_CUDA_ARCHITECTURES (75 and later)")
option(GRADSYNC_BUILD_COMMAND "Build the gradsync command (CLI11)" ${PROJECT_IS_TOP_LEVEL})
option(GRADSYNC_BUILD_TESTS "Build the tests (Catch2)" ${PROJECT_IS_TOP_LEVEL})
option(GRADSYNC_UNITY_BUILD "Compile the sources in groups: a clean build in half the time" OFF)
option(GRADSYNC_INSTALL "Enter gradsync in the install step" ${PROJECT_IS_TOP_LEVEL})
option(GRADSYNC_WITH_TORCH_TESTS "Register the tests against a PyTorch installed here" OFF)
set(GRADSYNC_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
if(GRADSYNC_BUILD_TESTS AND NOT GRADSYNC_BUILD_COMMAND)
  message(FATAL_ERROR "The tests need the command: set GRADSYNC_BUILD_COMMAND=ON "
    "or GRADSYNC_BUILD_TESTS=OFF")
endif()

# Warnings are errors only for compilers that the code is tested with, so that the new warnings of a
# new compiler do not break anybody's build.
set(gradsync_werror_default OFF)
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
   AND CMAKE_CXX_COMPILER_VERSION MATCHES "^(12|14)\\.")
  set(gradsync_werror_default ON)
endif()
option(GRADSYNC_WERROR "Treat warnings as errors" ${gradsync_werror_default})

if(PROJECT_IS_TOP_LEVEL)
  # -O2, not CMake's -O3: kernels that gain from -O3 request it themselves, everything else only
  # compiles slower, and GCC 12 at -O3 reports overlaps that do not exist (GCC bug 105329).
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endif()
