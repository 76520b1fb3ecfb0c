# Libraries come from the system's packages; scripts/setup installs them. CUDA's are never linked.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
if(NOT LAUNCHGAP_PORTABLE)
  find_package(benchmark 1.6 REQUIRED)
endif()
find_package(Boost 1.74 REQUIRED CONFIG)

# What the code links: launchgap_fmt and launchgap_benchmark are shared libraries, or part of a portable binary.
# Google Benchmark has no static library in Debian, so a portable build is given its source. libgcc stays shared:
# it is on every system, and the static one asks for the build machine's glibc.
if(LAUNCHGAP_PORTABLE)
  if(NOT LAUNCHGAP_BENCHMARK_SOURCE)
    message(FATAL_ERROR "LAUNCHGAP_PORTABLE needs LAUNCHGAP_BENCHMARK_SOURCE, the folder of Google Benchmark's "
                        "source; scripts/package gets it from the system's package sources")
  endif()
  add_library(launchgap_fmt ALIAS fmt::fmt-header-only)
  set(BENCHMARK_ENABLE_TESTING OFF CACHE INTERNAL "")
  set(BENCHMARK_ENABLE_INSTALL OFF CACHE INTERNAL "")
  set(BENCHMARK_ENABLE_WERROR OFF CACHE INTERNAL "")
  set(BUILD_SHARED_LIBS OFF)
  add_subdirectory(${LAUNCHGAP_BENCHMARK_SOURCE} ${CMAKE_BINARY_DIR}/google_benchmark EXCLUDE_FROM_ALL)
  add_library(launchgap_benchmark ALIAS benchmark)
  add_link_options(-static-libstdc++)
else()
  add_library(launchgap_fmt ALIAS fmt::fmt)
  add_library(launchgap_benchmark ALIAS benchmark::benchmark)
endif()

# oneDNN: the header tells which major of the library is loaded at run time.
find_path(LAUNCHGAP_ONEDNN_INCLUDE oneapi/dnnl/dnnl.h)
if(LAUNCHGAP_ONEDNN_INCLUDE)
  message(STATUS "oneDNN headers: ${LAUNCHGAP_ONEDNN_INCLUDE}")
else()
  message(WARNING "No oneDNN headers (package libdnnl-dev): the host device cannot convolve.")
endif()

# NVTX: from the CUDA toolkit, or from the wheel that scripts/setup puts into .venv.
file(GLOB nvtx_wheels ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/*/include)
find_path(LAUNCHGAP_NVTX_INCLUDE nvtx3/nvtx3.hpp
          HINTS ${nvtx_wheels} $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include)
if(LAUNCHGAP_NVTX_INCLUDE)
  message(STATUS "NVTX headers: ${LAUNCHGAP_NVTX_INCLUDE}")
else()
  message(WARNING "No NVTX headers: Nsight will not show launchgap's ranges. scripts/setup brings them.")
endif()

# libelf (elfutils) reads what a library's file is. It has no CMake package.
find_path(LAUNCHGAP_LIBELF_INCLUDE gelf.h REQUIRED)
add_library(launchgap_elf INTERFACE)
target_include_directories(launchgap_elf SYSTEM INTERFACE ${LAUNCHGAP_LIBELF_INCLUDE})
if(LAUNCHGAP_PORTABLE)
  # It unpacks compressed sections: by zlib, and since 0.189 by zstd where the distribution has it.
  find_library(LAUNCHGAP_LIBELF NAMES libelf.a REQUIRED)
  find_library(LAUNCHGAP_LIBZ NAMES libz.a REQUIRED)
  find_library(LAUNCHGAP_LIBZSTD NAMES libzstd.a)
  target_link_libraries(launchgap_elf INTERFACE ${LAUNCHGAP_LIBELF} ${LAUNCHGAP_LIBZ})
  if(LAUNCHGAP_LIBZSTD)
    target_link_libraries(launchgap_elf INTERFACE ${LAUNCHGAP_LIBZSTD})
  endif()
else()
  find_library(LAUNCHGAP_LIBELF NAMES elf REQUIRED)
  target_link_libraries(launchgap_elf INTERFACE ${LAUNCHGAP_LIBELF})
endif()

# What recordings of others are read with: SQLite, zlib, and RapidJSON, which is headers only.
find_path(LAUNCHGAP_SQLITE_INCLUDE sqlite3.h REQUIRED)
find_path(LAUNCHGAP_ZLIB_INCLUDE zlib.h REQUIRED)
find_path(LAUNCHGAP_RAPIDJSON_INCLUDE rapidjson/reader.h REQUIRED)
if(LAUNCHGAP_PORTABLE)
  find_library(LAUNCHGAP_SQLITE NAMES libsqlite3.a REQUIRED)
  find_library(LAUNCHGAP_ZLIB NAMES libz.a REQUIRED)
  set(sqlite_needs m)
else()
  find_library(LAUNCHGAP_SQLITE NAMES sqlite3 REQUIRED)
  find_library(LAUNCHGAP_ZLIB NAMES z REQUIRED)
endif()
add_library(launchgap_formats INTERFACE)
target_include_directories(launchgap_formats SYSTEM INTERFACE
  ${LAUNCHGAP_SQLITE_INCLUDE} ${LAUNCHGAP_ZLIB_INCLUDE} ${LAUNCHGAP_RAPIDJSON_INCLUDE})
target_link_libraries(launchgap_formats INTERFACE ${LAUNCHGAP_SQLITE} ${LAUNCHGAP_ZLIB} ${sqlite_needs})
