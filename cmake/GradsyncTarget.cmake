# Settings that every target of the project shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# gradsync_target(NAME): warnings, include root and sanitizers.
function(gradsync_target name)
  get_target_property(type ${name} TYPE)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  # -ffp-contract=off: whether a*b+c is fused must not depend on the optimizer's mood; where PyTorch
  # fuses, the code calls std::fma.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                         -ffp-contract=off)
  if(GRADSYNC_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(GRADSYNC_SANITIZE)
    target_compile_options(${name} PUBLIC -fsanitize=${GRADSYNC_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${name} PUBLIC -fsanitize=${GRADSYNC_SANITIZE})
  endif()
endfunction()
