# cmake -DNVCC= -DSOURCE= -DOUTPUT= -DFLAGS= -P: compiles every kernel for every architecture that is
# supported, with warnings as errors.
file(MAKE_DIRECTORY "${OUTPUT}")
file(GLOB kernels "${SOURCE}/backends/cuda/kernels/*.cu")
if(NOT kernels)
  message(FATAL_ERROR "no kernels in ${SOURCE}/backends/cuda/kernels")
endif()
set(architectures "")
foreach(architecture 75 80 90 100)
  list(APPEND architectures "-gencode=arch=compute_${architecture},code=sm_${architecture}")
endforeach()
foreach(kernel ${kernels})
  get_filename_component(name "${kernel}" NAME_WE)
  execute_process(
    COMMAND "${NVCC}" -c -std=c++20 -O2 --Werror=all-warnings ${FLAGS} ${architectures} --threads=2
            "-I${SOURCE}" "${kernel}" -o "${OUTPUT}/${name}.o"
    RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(failed)
    message(FATAL_ERROR "${kernel}:\n${text}")
  endif()
endforeach()
