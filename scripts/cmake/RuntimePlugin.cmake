# liblaunchgap_runtime.so beside the binary: the CUDA runtime's ways to launch (harness/device/cuda/runtime_plugin.h).
# It needs no C++ library, so it runs where the package does. It takes nvcc and the runtime's static library; without them launch/api is unsupported and says so.
set(plugin_flags -shared -std=c++17 -cudart static -Xcompiler -fPIC,-fvisibility=hidden -Xlinker --exclude-libs=ALL
                 -Xlinker --as-needed -Xcompiler -fno-exceptions,-fno-threadsafe-statics)
set(plugin_works FALSE)
if(LAUNCHGAP_NVCC)
  file(WRITE ${CMAKE_BINARY_DIR}/trial/runtime.cu "#include <cuda_runtime.h>\nint trial() { return cudaGetLastError(); }\n")
  execute_process(COMMAND ${LAUNCHGAP_NVCC} ${plugin_flags}
                          -o ${CMAKE_BINARY_DIR}/trial/runtime.so ${CMAKE_BINARY_DIR}/trial/runtime.cu
                  RESULT_VARIABLE failed ERROR_VARIABLE why OUTPUT_QUIET)
  if(failed)
    message(WARNING "nvcc cannot link the CUDA runtime, so its ways to launch will not be measured: ${why}")
  else()
    set(plugin_works TRUE)
  endif()
endif()

if(plugin_works)
  set(plugin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/liblaunchgap_runtime.so)
  set(plugin_source ${CMAKE_SOURCE_DIR}/harness/device/cuda/runtime_plugin.cu)
  add_custom_command(OUTPUT ${plugin}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
                     COMMAND ${LAUNCHGAP_NVCC} ${plugin_flags} -O2 -arch=all -o ${plugin} ${plugin_source}
                     DEPENDS ${plugin_source} ${CMAKE_SOURCE_DIR}/harness/device/cuda/runtime_plugin.h VERBATIM)
  add_custom_target(launchgap_runtime_plugin ALL DEPENDS ${plugin})
endif()
