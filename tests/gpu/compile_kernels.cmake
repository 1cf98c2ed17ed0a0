# cmake -DNVCC= -DSOURCE= -DOUTPUT= -DFLAGS= -P: compiles every kernel for every architecture that is
# supported, with warnings as errors. CUDA before 12.8 does not know the newest of them.
file(MAKE_DIRECTORY "${OUTPUT}")
file(GLOB kernels "${SOURCE}/backends/cuda/kernels/*.cu")
if(NOT kernels)
  message(FATAL_ERROR "no kernels in ${SOURCE}/backends/cuda/kernels")
endif()
execute_process(COMMAND "${NVCC}" --list-gpu-arch OUTPUT_VARIABLE known COMMAND_ERROR_IS_FATAL ANY)
set(architectures "")
foreach(architecture 75 80 90 100)
  if(NOT known MATCHES "compute_${architecture}\n")
    message(STATUS "sm_${architecture}: not known to ${NVCC}")
    continue()
  endif()
  list(APPEND architectures "-gencode=arch=compute_${architecture},code=sm_${architecture}")
endforeach()
if(NOT architectures)
  message(FATAL_ERROR "${NVCC} knows none of the architectures that are supported")
endif()
foreach(kernel ${kernels})
  get_filename_component(name "${kernel}" NAME_WE)
  execute_process(
    COMMAND "${NVCC}" -c -std=c++20 -O2 --Werror=all-warnings ${FLAGS} ${architectures} --threads=2
            "-I${SOURCE}" "-I${SOURCE}/include" "${kernel}" -o "${OUTPUT}/${name}.o"
    RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(failed)
    message(FATAL_ERROR "${kernel}:\n${text}")
  endif()
endforeach()
