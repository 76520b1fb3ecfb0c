# Libraries come from the system's packages; scripts/setup installs them. CUDA's are never linked.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(benchmark 1.6 REQUIRED)
find_package(Boost 1.74 REQUIRED)

if(LAUNCHGAP_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
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
