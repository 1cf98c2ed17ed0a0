# CUDA and NCCL for the nccl backend. Sets GRADSYNC_HAVE_NCCL, or GRADSYNC_NCCL_WHY_NOT to a
# sentence. The build needs only headers and nvcc; the libraries are loaded when a rank starts, so
# that one build supports all minor versions of CUDA and NCCL 2.18 to 2.30.
set(GRADSYNC_HAVE_NCCL FALSE)
if(NOT GRADSYNC_WITH_NCCL)
  set(GRADSYNC_NCCL_WHY_NOT "this build was configured with GRADSYNC_WITH_NCCL=OFF")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  set(GRADSYNC_NCCL_WHY_NOT
    "CUDA was not found when this was built (nvcc of CUDA 12 or 13, with this C++ compiler)")
  return()
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${GRADSYNC_CUDA_ARCHITECTURES})
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that CUDA 12 has C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
# nvcc may use its own compiler (Debian 13: GCC 13 beside GCC 14). Its folder must not precede the
# C++ compiler's when linking C++, because the C++ compiler's runtime is newer.
list(FILTER CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES EXCLUDE REGEX "/gcc/")
find_package(CUDAToolkit 12 QUIET)
if(NOT CUDAToolkit_FOUND)
  set(GRADSYNC_NCCL_WHY_NOT "the CUDA toolkit that was found is older than 12")
  return()
endif()

find_path(GRADSYNC_NCCL_INCLUDE_DIR nccl.h
  HINTS ENV NCCL_HOME ENV NCCL_ROOT ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(GRADSYNC_NCCL_LIBRARY nccl
  HINTS ENV NCCL_HOME ENV NCCL_ROOT ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
find_library(GRADSYNC_CUBLAS_LIBRARY cublas HINTS ${CUDAToolkit_LIBRARY_DIR})
if(NOT GRADSYNC_NCCL_INCLUDE_DIR)
  set(GRADSYNC_NCCL_WHY_NOT "NCCL's header was not found when this was built (Debian: libnccl-dev)")
  return()
endif()
if(NOT GRADSYNC_NCCL_LIBRARY)
  set(GRADSYNC_NCCL_LIBRARY "libnccl.so.2")
endif()
if(NOT GRADSYNC_CUBLAS_LIBRARY)
  set(GRADSYNC_CUBLAS_LIBRARY "libcublas.so.${CUDAToolkit_VERSION_MAJOR}")
endif()
set(GRADSYNC_HAVE_NCCL TRUE)

# For nvcc: no implicit fused multiply-adds, and kernels may call the engine's constexpr functions
# (conversions of 16-bit floats, counter-based random numbers).
set(GRADSYNC_CUDA_FLAGS -fmad=false --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra,-ffp-contract=off)
if(GRADSYNC_WERROR)
  list(APPEND GRADSYNC_CUDA_FLAGS --Werror=all-warnings)
endif()

# gradsync_cuda_target(NAME): like gradsync_target, for a target with CUDA sources.
function(gradsync_cuda_target name)
  gradsync_language(${name})
  target_compile_options(${name} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-ffp-contract=off>"
    "$<$<COMPILE_LANGUAGE:CUDA>:${GRADSYNC_CUDA_FLAGS}>")
  if(GRADSYNC_WERROR)
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Werror>")
  endif()
endfunction()
