// What the .cu files of this folder need from either compiler: nvcc, or stock clang without a CUDA
// toolkit (clang -x cuda --cuda-device-only -nocudainc -nocudalib), which emits PTX that every
// driver from Kepler's on can compile. Only what both spell the same way may be used beyond this
// header.
#pragma once

#if defined(__clang__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
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
__device__ inline unsigned block_threads() {
  return __nvvm_read_ptx_sreg_ntid_x();
}
__device__ inline unsigned block_index() {
  return __nvvm_read_ptx_sreg_ctaid_x();
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
__device__ inline unsigned block_threads() {
  return blockDim.x;
}
__device__ inline unsigned block_index() {
  return blockIdx.x;
}
__device__ inline unsigned block_thread() {
  return threadIdx.x;
}
#endif

/// Adds one and returns what was there before. No fence: that would be most of a short kernel.
__device__ inline unsigned atomic_increment(unsigned* counter) {
  unsigned before;
  asm volatile("atom.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
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

/// Nanoseconds of the GPU's global timer: it runs in real time but in coarse steps (about 1 us, and
/// finer while a profiler is attached), and is not the host's clock.
__device__ inline unsigned long long global_timer_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Cycles of the multiprocessor that this thread runs on.
__device__ inline unsigned long long multiprocessor_clock() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
  return now;
}

/// Returns after so many nanoseconds, up to a second. Kernels that waited for the global timer
/// alone would end on its steps, and the gap to the next kernel would vanish within one. So cycles
/// are counted, and what a cycle takes is learnt from the steps seen so far: two of them at least,
/// so that no wait but 0 is shorter than one to two steps.
__device__ inline void wait_ns(unsigned long long nanoseconds) {
  if (nanoseconds == 0) return;
  const unsigned long long begin = multiprocessor_clock();
  unsigned long long step = global_timer_ns();
  unsigned long long first_step = 0, first_clock = 0;  // the first step that was seen
  unsigned long long step_ns = 0, step_cycles = 0;     // from there to the last one
  for (;;) {
    const unsigned long long now = global_timer_ns();
    const unsigned long long clock = multiprocessor_clock();
    if (now != step) {
      step = now;
      if (first_step == 0) {
        first_step = now;
        first_clock = clock;
      }
      step_ns = now - first_step;
      step_cycles = clock - first_clock;
    }
    if (step_ns > 0 && (clock - begin) * step_ns >= nanoseconds * step_cycles) return;
  }
}
