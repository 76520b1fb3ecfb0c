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
__device__ inline unsigned grid_blocks() {
  return __nvvm_read_ptx_sreg_nctaid_x();
}
__device__ inline unsigned block_thread() {
  return __nvvm_read_ptx_sreg_tid_x();
}
#else
__device__ inline unsigned global_thread() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ inline unsigned grid_threads() {
  return gridDim.x * blockDim.x;
}
__device__ inline unsigned grid_blocks() {
  return gridDim.x;
}
__device__ inline unsigned block_thread() {
  return threadIdx.x;
}
#endif

/// Adds one and returns what was there before; in order with the writes of this thread.
__device__ inline unsigned atomic_increment(unsigned* counter) {
  unsigned before;
  asm volatile("membar.sys; atom.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

/// All threads of the block have come here, and see what each of them wrote.
__device__ inline void block_barrier() {
  asm volatile("bar.sync 0;" ::: "memory");
}

/// What this thread wrote is seen by the whole device before what it writes next.
__device__ inline void device_fence() {
  asm volatile("membar.gl;" ::: "memory");
}

/// Nanoseconds of the GPU's global timer: it ticks in real time but in coarse steps (up to about 1
/// us) and is not the host's clock, so it serves for time-outs and never for measurement.
__device__ inline unsigned long long global_timer_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
