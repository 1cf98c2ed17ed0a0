# The target `docs`: the reference of the installed headers, as HTML in the build folder's html/. A
# comment that Doxygen does not understand fails it.

find_package(Doxygen QUIET)
if(NOT DOXYGEN_FOUND)
  add_custom_target(docs COMMENT "SKIPPED: needs Doxygen (Debian: doxygen), then another configure step"
    COMMAND "${CMAKE_COMMAND}" -E true)
  return()
endif()

get_property(libraries GLOBAL PROPERTY GRADSYNC_LIBRARIES)
set(headers)
foreach(library IN LISTS libraries)
  get_target_property(files ${library} HEADER_SET)
  if(files)
    list(APPEND headers ${files})
  endif()
endforeach()

set(DOXYGEN_PROJECT_BRIEF "${PROJECT_DESCRIPTION}")
set(DOXYGEN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
set(DOXYGEN_STRIP_FROM_PATH "${PROJECT_SOURCE_DIR}/include")
set(DOXYGEN_STRIP_FROM_INC_PATH "${PROJECT_SOURCE_DIR}/include")
set(DOXYGEN_EXTRACT_ALL YES)
set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
set(DOXYGEN_HAVE_DOT NO)
set(DOXYGEN_QUIET YES)
set(DOXYGEN_WARN_NO_PARAMDOC NO)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
doxygen_add_docs(docs ${headers} COMMENT "The reference: html/index.html")
