# Device code in two forms: portable PTX by stock clang, machine code for every architecture that nvcc knows.
# Either compiler may be missing, and the build says what that costs.
find_program(LAUNCHGAP_CLANG NAMES clang++ clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19)
file(GLOB nvcc_wheels ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/*/bin)
find_program(LAUNCHGAP_NVCC nvcc
             HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin ${nvcc_wheels} PATHS /usr/local/cuda/bin)

set(portable_flags -x cuda --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version -std=c++17 -O3
                   -DLAUNCHGAP_DEVICE_CODE)
set(LAUNCHGAP_PORTABLE_FLAGS ${portable_flags} --cuda-gpu-arch=sm_35)
# Kernels whose instructions have a first generation: NAME.cu of the folders matmul and convolution.
set(LAUNCHGAP_PORTABLE_FLAGS_matmul_wmma ${portable_flags} --cuda-gpu-arch=sm_70 -Xclang -target-feature -Xclang +ptx63)
foreach(kernel matmul_mma convolution_mma)
  set(LAUNCHGAP_PORTABLE_FLAGS_${kernel} none)
  set(LAUNCHGAP_NATIVE_FROM_${kernel} 80)
endforeach()
# What -arch=all leaves out.
set(LAUNCHGAP_PORTABLE_FLAGS_matmul_wgmma none)
set(LAUNCHGAP_NATIVE_ONLY_matmul_wgmma 90a)
set(LAUNCHGAP_PORTABLE_FLAGS_matmul_tcgen05 none)
set(LAUNCHGAP_NATIVE_ONLY_matmul_tcgen05 100f)
set(LAUNCHGAP_NATIVE_ARCHITECTURES "")

# A compiler that is there may still be unable to do it: a clang without the NVPTX target, an nvcc without a
# host compiler that it accepts. Try both on the smallest kernel.
set(trial ${CMAKE_BINARY_DIR}/trial)
file(MAKE_DIRECTORY ${trial})
if(LAUNCHGAP_CLANG)
  execute_process(COMMAND ${LAUNCHGAP_CLANG} ${LAUNCHGAP_PORTABLE_FLAGS} -S -o ${trial}/null.ptx
                          ${CMAKE_SOURCE_DIR}/kernels/null.cu
                  RESULT_VARIABLE failed ERROR_VARIABLE why OUTPUT_QUIET)
  if(failed)
    message(WARNING "${LAUNCHGAP_CLANG} cannot compile device code: ${why}")
    set(LAUNCHGAP_CLANG "LAUNCHGAP_CLANG-NOTFOUND")
  endif()
endif()
if(LAUNCHGAP_NVCC)
  set(LAUNCHGAP_NATIVE_FLAGS -fatbin -std=c++17 -arch=all -DLAUNCHGAP_DEVICE_CODE)
  # Where nvcc lets us: with a header of ours in place of CUDA's, by which the same code takes a quarter of the time; and
  # uncompressed, since drivers older than the toolkit cannot read its compression.
  foreach(flag -I${CMAKE_SOURCE_DIR}/kernels/nvcc --compress-mode=none)
    execute_process(COMMAND ${LAUNCHGAP_NVCC} ${LAUNCHGAP_NATIVE_FLAGS} ${flag} -o ${trial}/null.fatbin
                            ${CMAKE_SOURCE_DIR}/kernels/null.cu
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      list(APPEND LAUNCHGAP_NATIVE_FLAGS ${flag})
    endif()
  endforeach()
  execute_process(COMMAND ${LAUNCHGAP_NVCC} ${LAUNCHGAP_NATIVE_FLAGS} -o ${trial}/null.fatbin
                          ${CMAKE_SOURCE_DIR}/kernels/null.cu
                  RESULT_VARIABLE failed ERROR_VARIABLE why OUTPUT_QUIET)
  execute_process(COMMAND ${LAUNCHGAP_NVCC} --list-gpu-arch OUTPUT_VARIABLE architectures ERROR_QUIET)
  if(failed)
    message(WARNING "${LAUNCHGAP_NVCC} cannot compile device code: ${why}")
    set(LAUNCHGAP_NVCC "LAUNCHGAP_NVCC-NOTFOUND")
  else()
    string(REGEX MATCHALL "[0-9]+" LAUNCHGAP_NATIVE_ARCHITECTURES "${architectures}")
  endif()
endif()

if(LAUNCHGAP_CLANG)
  message(STATUS "Portable kernels: ${LAUNCHGAP_CLANG}")
else()
  message(WARNING "No clang for device code: GPUs that nvcc does not know cannot run launchgap's kernels.")
endif()
if(LAUNCHGAP_NVCC)
  message(STATUS "Native kernels: ${LAUNCHGAP_NVCC} for ${LAUNCHGAP_NATIVE_ARCHITECTURES}")
else()
  message(WARNING "No nvcc: kernels are compiled by the driver from portable PTX, at each first use.")
endif()

# In place of all architectures those from this compute capability on, and PTX of the last one.
function(launchgap_native_flags_from result first)
  set(flags ${LAUNCHGAP_NATIVE_FLAGS})
  list(REMOVE_ITEM flags -arch=all)
  foreach(architecture ${LAUNCHGAP_NATIVE_ARCHITECTURES})
    if(architecture GREATER_EQUAL first)
      list(APPEND flags -gencode arch=compute_${architecture},code=sm_${architecture})
    endif()
  endforeach()
  set(ordered ${LAUNCHGAP_NATIVE_ARCHITECTURES})
  list(SORT ordered COMPARE NATURAL)
  list(POP_BACK ordered last)
  list(APPEND flags -gencode arch=compute_${last},code=compute_${last})
  set(${result} ${flags} PARENT_SCOPE)
endfunction()

# launchgap_device_code(TARGET KERNELS name…): compiles NAME.cu of the current folder in both forms and embeds
# them into TARGET. arguments_N is made from arguments.cu, for N bytes.
function(launchgap_device_code target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "KERNELS")
  set(generated ${CMAKE_BINARY_DIR}/generated)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/images)
  file(MAKE_DIRECTORY ${folder} ${generated})
  set(assembly "")
  set(list "")
  set(images "")
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/device.h ${CMAKE_CURRENT_SOURCE_DIR}/element.h
    ${CMAKE_CURRENT_SOURCE_DIR}/nvcc/cuda_runtime.h
    ${CMAKE_CURRENT_SOURCE_DIR}/multiply_add.h ${CMAKE_CURRENT_SOURCE_DIR}/ladder/instructions*.h ${CMAKE_CURRENT_SOURCE_DIR}/convolution/*.h)
  foreach(kernel ${arg_KERNELS})
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/${kernel}.cu)
    set(defined "")
    if(kernel MATCHES "^arguments_([0-9]+)$")
      set(source ${CMAKE_CURRENT_SOURCE_DIR}/arguments.cu)
      set(defined -DLAUNCHGAP_ARGUMENT_BYTES=${CMAKE_MATCH_1} -DLAUNCHGAP_KERNEL=launchgap_${kernel})
    endif()
    string(APPEND list "LAUNCHGAP_KERNEL_IMAGE(${kernel})\n")
    if(kernel MATCHES "^(matmul|convolution)_(.*)$")
      set(source ${CMAKE_CURRENT_SOURCE_DIR}/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.cu)
    endif()
    set(portable ${LAUNCHGAP_PORTABLE_FLAGS})
    if(DEFINED LAUNCHGAP_PORTABLE_FLAGS_${kernel})
      set(portable ${LAUNCHGAP_PORTABLE_FLAGS_${kernel}})
    endif()
    set(native ${LAUNCHGAP_NATIVE_FLAGS})
    if(DEFINED LAUNCHGAP_NATIVE_FROM_${kernel})
      launchgap_native_flags_from(native ${LAUNCHGAP_NATIVE_FROM_${kernel}})
    endif()
    if(DEFINED LAUNCHGAP_NATIVE_ONLY_${kernel})
      set(only ${LAUNCHGAP_NATIVE_ONLY_${kernel}})
      list(REMOVE_ITEM native -arch=all)
      list(APPEND native -gencode arch=compute_${only},code=sm_${only})
      # nvcc does not list these; that of CUDA 12.8 has 100, and no 100f. Tried once with each nvcc.
      if(LAUNCHGAP_NVCC AND NOT "${LAUNCHGAP_KNOWN_${only}}" MATCHES "^(yes|no), ${LAUNCHGAP_NVCC}$")
        execute_process(COMMAND ${LAUNCHGAP_NVCC} ${native} -o ${trial}/${only}.fatbin ${CMAKE_CURRENT_SOURCE_DIR}/null.cu
                        RESULT_VARIABLE code OUTPUT_QUIET ERROR_QUIET)
        set(known no)
        if(code EQUAL 0)
          set(known yes)
        endif()
        set(LAUNCHGAP_KNOWN_${only} "${known}, ${LAUNCHGAP_NVCC}" CACHE INTERNAL "whether nvcc compiles for it")
      endif()
      if(NOT "${LAUNCHGAP_KNOWN_${only}}" STREQUAL "yes, ${LAUNCHGAP_NVCC}")
        set(native none)
      endif()
    endif()
    foreach(form ptx fatbin)
      set(image ${folder}/${kernel}.${form})
      set(include "")
      if(form STREQUAL "ptx" AND LAUNCHGAP_CLANG AND NOT portable STREQUAL none)
        add_custom_command(OUTPUT ${image}
                           COMMAND ${LAUNCHGAP_CLANG} ${portable} ${defined} -S -o ${image} ${source}
                           DEPENDS ${source} ${headers} VERBATIM)
      elseif(form STREQUAL "fatbin" AND LAUNCHGAP_NVCC AND NOT native STREQUAL none)
        add_custom_command(OUTPUT ${image}
                           COMMAND ${LAUNCHGAP_NVCC} ${native} ${defined} -o ${image} ${source}
                           DEPENDS ${source} ${headers} VERBATIM)
      else()
        set(image "")
      endif()
      if(image)
        list(APPEND images ${image})
        set(include "  .incbin \"${image}\"\n")
      endif()
      string(APPEND assembly
             "  .balign 16\n  .globl ${kernel}_${form}_begin, ${kernel}_${form}_end\n${kernel}_${form}_begin:\n")
      string(APPEND assembly "${include}")
      # PTX is handed to the driver as a string, so its end includes the NUL byte.
      if(form STREQUAL "ptx" AND image)
        string(APPEND assembly "  .byte 0\n")
      endif()
      string(APPEND assembly "${kernel}_${form}_end:\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${generated}/kernel_images.inc CONTENT "${list}" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/images.S
       CONTENT "  .section .rodata\n${assembly}  .section .note.GNU-stack,\"\",@progbits\n" @ONLY)
  set_source_files_properties(${folder}/images.S PROPERTIES OBJECT_DEPENDS "${images}")
  target_sources(${target} PRIVATE ${folder}/images.S)
  list(JOIN LAUNCHGAP_NATIVE_ARCHITECTURES "," architectures)
  set_source_files_properties(images.cpp PROPERTIES COMPILE_DEFINITIONS
                              "LAUNCHGAP_NATIVE_ARCHITECTURES=${architectures}")
endfunction()
