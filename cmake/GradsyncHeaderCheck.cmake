# Target self_contained_headers: every header of the libraries compiles on its own, whether
# installed or not.
#
# For most headers this is already checked, because a .cpp file includes the header of the same name
# first. Only the others get a one-line source file. If something precedes that first include (a
# precompiled header, another file of a unity build), it proves nothing, and every header gets a
# file.
function(gradsync_check_headers)
  add_custom_target(self_contained_headers)
  get_property(libraries GLOBAL PROPERTY GRADSYNC_LIBRARIES)
  foreach(library IN LISTS libraries)
    get_target_property(headers ${library} GRADSYNC_HEADERS)
    gradsync_headers_included_first(${library} proven)
    list(REMOVE_ITEM headers ${proven})
    set(files)
    foreach(header IN LISTS headers)
      set(file "${PROJECT_BINARY_DIR}/headers/${header}.cpp")
      file(CONFIGURE OUTPUT "${file}" CONTENT "#include \"${header}\"\n")
      list(APPEND files "${file}")
    endforeach()
    if(files)
      add_library(${library}_headers OBJECT EXCLUDE_FROM_ALL ${files})
      gradsync_language(${library}_headers)
      target_compile_options(${library}_headers PRIVATE -O0)
      foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
        set_property(TARGET ${library}_headers APPEND PROPERTY ${property}
          "$<TARGET_PROPERTY:${library},${property}>")
      endforeach()
      add_dependencies(self_contained_headers ${library}_headers)
    endif()
    add_dependencies(self_contained_headers ${library})
  endforeach()
endfunction()

# The headers, as spelled in includes, that are the first include of their library's source file of
# the same name.
function(gradsync_headers_included_first library result)
  set(found)
  get_target_property(sources ${library} SOURCES)
  get_target_property(folder ${library} SOURCE_DIR)
  foreach(property PRECOMPILE_HEADERS PRECOMPILE_HEADERS_REUSE_FROM UNITY_BUILD)
    get_target_property(value ${library} ${property})
    if(value)
      set(sources)
    endif()
  endforeach()
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}")
    cmake_path(GET source STEM name)
    file(STRINGS "${source}" include REGEX "^#include" LIMIT_COUNT 1)
    if(include MATCHES "^#include \"(gradsync/.*/${name}\\.hpp)\"")
      list(APPEND found "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()
