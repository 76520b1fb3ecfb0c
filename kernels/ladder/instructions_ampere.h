// Ampere: copies past the registers, and tensor cores by mma.sync.
#pragma once

#include "instructions.h"

namespace launchgap::kernels {

/// Copies 16 bytes into shared memory, past the registers and L1, while the thread goes on
/// (9.7.9.25.3.1). Both addresses are multiples of 16.
LAUNCHGAP_DEVICE void copy_async(void* shared, const void* global LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::copy_async(shared, global, place);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(global)
               : "memory");
#endif
}
/// The same where it is `inside`; elsewhere zeros come, and nothing is read.
LAUNCHGAP_DEVICE void copy_async_if(bool inside,
                                    void* shared,
                                    const void* global LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::copy_async(shared, inside ? global : nullptr, place);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global),
               "r"(inside ? 16 : 0)
               : "memory");
#endif
}
/// The thread's copies so far, since the last such call, are a group.
LAUNCHGAP_DEVICE void commit_copies() {
#ifdef LAUNCHGAP_EMULATED
  emulated::commit_copies();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Returns when all groups of the thread but the last kGroups have arrived. Other threads see them
/// after the next barrier.
template <unsigned kGroups>
LAUNCHGAP_DEVICE void wait_for_copies() {
#ifdef LAUNCHGAP_EMULATED
  emulated::wait_for_copies(kGroups);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

/// Reads four 8 x 8 matrices of 16 bits, of which each lane names a row: lanes 0 to 7 those of the
/// first (ldmatrix, 9.7.14.5.15). Lane l gets elements 2 (l % 4) and the next one of row l / 4 of
/// each. `transposed`: of what the columns are rows of.
template <bool kTransposed>
LAUNCHGAP_DEVICE void load_matrices(unsigned (&to)[4], const Bits16* row LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::load_matrices(to, row, kTransposed, place);
#else
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
#endif
}

/// sums (16 x 8, FP32) += a (16 x 16) b (16 x 8) of bfloat16 (9.7.14.5.8). With g = lane / 4 and
/// t = lane % 4, a lane has of A rows g, g + 8, g, g + 8 and columns 2t, 2t, 2t + 8, 2t + 8 and the
/// ones after them; of B column g and rows 2t, 2t + 8 and the ones after them; of the sums rows
/// g, g, g + 8, g + 8 and columns 2t, 2t + 1, 2t, 2t + 1.
LAUNCHGAP_DEVICE void multiply(float (&sums)[4],
                               const unsigned (&a)[4],
                               const unsigned (&b)[2] LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::multiply_bfloats(sums, a, b, place);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

}  // namespace launchgap::kernels
