// What the .cu files of this folder need from either compiler: nvcc, or stock clang without a CUDA
// toolkit (clang -x cuda --cuda-device-only -nocudainc -nocudalib), which emits PTX that every
// driver from Kepler's on can compile. Only what both spell the same way may be used beyond this
// header.
#pragma once

#if defined(__clang__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
__device__ inline unsigned global_thread() {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}
__device__ inline unsigned grid_threads() {
  return __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
}
#else
__device__ inline unsigned global_thread() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ inline unsigned grid_threads() {
  return gridDim.x * blockDim.x;
}
#endif

/// Nanoseconds of the GPU's global timer: it ticks in real time but in coarse steps (up to about 1
/// us) and is not the host's clock, so it serves for time-outs and never for measurement.
__device__ inline unsigned long long global_timer_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
