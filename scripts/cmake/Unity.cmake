# Twelve sources are compiled as one: a build from nothing takes half the time, and one after a change of a source some
# seconds more. Two sources of a library then cannot have the same name in their unnamed namespaces, unless one of them is
# compiled alone. scripts/lint compiles what changed alone.
option(LAUNCHGAP_UNITY "Compile twelve sources as one: half the time for a build from nothing" ON)
set(CMAKE_UNITY_BUILD ${LAUNCHGAP_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
# GCC collects garbage often enough to take a tenth of the time; such units need 1.5 GiB without.
if(LAUNCHGAP_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-expand=200>" "$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=500000>")
endif()

# compiled_alone(source…): they have a name that another source of their library has too.
function(compiled_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
