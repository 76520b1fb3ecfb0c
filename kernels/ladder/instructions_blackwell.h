// Blackwell: tensor cores by tcgen05, whose sums are in tensor memory.
#pragma once

#include "instructions_hopper.h"

namespace launchgap::kernels {

/// Tensor memory has 128 lanes, and 512 columns of 4 bytes in each; an address has the lane in its
/// upper 16 bits and the column in the lower ones. Warp w of four reads lanes 32 w to 32 w + 31.
constexpr unsigned kLaneOfAddress = 16;

/// A block's warp takes so many columns, a power of two from 32 on, and waits until it has them;
/// their address is written into shared memory (9.7.16.7.1). It takes no more of them after that,
/// so that other blocks may.
template <unsigned kColumns>
LAUNCHGAP_DEVICE void take_columns(unsigned& address LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::take_columns(&address, kColumns, place);
#else
  asm volatile(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n"
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(shared_address(&address)),
      "n"(kColumns)
      : "memory");
#endif
}
/// The same warp gives them back, before the block ends.
template <unsigned kColumns>
LAUNCHGAP_DEVICE void give_columns(unsigned address LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::give_columns(address, kColumns, place);
#else
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "n"(kColumns)
               : "memory");
#endif
}

/// What the thread has had tcgen05 do is before what others do after the next barrier.
LAUNCHGAP_DEVICE void fence_before_barrier() {
#ifdef LAUNCHGAP_EMULATED
  emulated::fence_before_barrier();
#else
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
#endif
}
/// What it has them do from now on is after what others did before the last barrier.
LAUNCHGAP_DEVICE void fence_after_barrier() {
#ifdef LAUNCHGAP_EMULATED
  emulated::fence_after_barrier();
#else
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#endif
}

/// An operand in shared memory with the 128-byte swizzle (9.7.16.4.1): where it begins, and how far
/// apart its parts are, in bytes.
LAUNCHGAP_DEVICE unsigned long long operand_of_tcgen05(const void* shared,
                                                       unsigned leading,
                                                       unsigned stride) {
#ifdef LAUNCHGAP_EMULATED
  const unsigned address = emulated::shared_offset(shared);
#else
  const unsigned address = shared_address(shared);
#endif
  const auto part = [](unsigned bytes) {
    return static_cast<unsigned long long>(bytes >> 4 & 0x3FFF);
  };
  return part(address) | part(leading) << 16 | part(stride) << 32 | 1ull << 46 | 2ull << 61;
}

/// The same so many bytes further, all of it in shared memory.
LAUNCHGAP_DEVICE unsigned long long moved(unsigned long long operand, unsigned bytes) {
  return operand + (bytes >> 4);
}

/// Products of kRows x kColumns bfloat16 elements with sums in FP32 (9.7.16.4.2): A's rows lie
/// along the depth, those of B along its columns.
template <unsigned kRows, unsigned kColumns>
LAUNCHGAP_DEVICE constexpr unsigned bfloat_products() {
  constexpr unsigned kFloat = 1, kBfloat = 1, kAlongColumns = 1;
  return kFloat << 4 | kBfloat << 7 | kBfloat << 10 | kAlongColumns << 16 | kColumns / 8 << 17 |
         kRows / 16 << 24;
}

/// sums (+)= a b, by 16 of the depth, while the thread goes on; one thread asks for all of it. If
/// not `add`, what was in the sums before counts nothing (9.7.16.10.9.1).
LAUNCHGAP_DEVICE void multiply_into_columns(unsigned sums,
                                            unsigned long long a,
                                            unsigned long long b,
                                            unsigned kind,
                                            bool add LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::multiply_into_columns(sums, a, b, kind, add, place);
#else
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, add; }" ::"r"(sums),
      "l"(a),
      "l"(b),
      "r"(kind),
      "r"(static_cast<int>(add))
      : "memory");
#endif
}
/// The mbarrier has an arrival when all that the thread has asked for so far is done.
LAUNCHGAP_DEVICE void arrive_when_done(Mbarrier& mbarrier LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::arrive_when_done(&mbarrier, place);
#else
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(&mbarrier))
               : "memory");
#endif
}

/// All lanes of the warp are here.
LAUNCHGAP_DEVICE void wait_for_warp(LAUNCHGAP_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::wait_for_warp(place);
#else
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#endif
}

/// 32 sums of a lane, from this column on; all lanes of a warp name the address of the first of
/// them (tcgen05.ld, 9.7.16.8.2). They are there after the wait.
LAUNCHGAP_DEVICE void load_columns(float (&sums)[32], unsigned address LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::load_columns(sums, 32, address, place);
#else
  float* s = sums;
  // clang-format off
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, [%32];"
      : "=f"(s[0]), "=f"(s[1]), "=f"(s[2]), "=f"(s[3]), "=f"(s[4]), "=f"(s[5]), "=f"(s[6]), "=f"(s[7]),
        "=f"(s[8]), "=f"(s[9]), "=f"(s[10]), "=f"(s[11]), "=f"(s[12]), "=f"(s[13]), "=f"(s[14]), "=f"(s[15]),
        "=f"(s[16]), "=f"(s[17]), "=f"(s[18]), "=f"(s[19]), "=f"(s[20]), "=f"(s[21]), "=f"(s[22]), "=f"(s[23]),
        "=f"(s[24]), "=f"(s[25]), "=f"(s[26]), "=f"(s[27]), "=f"(s[28]), "=f"(s[29]), "=f"(s[30]), "=f"(s[31])
      : "r"(address)
      : "memory");
  // clang-format on
#endif
}
/// And the compiler uses them after it, and not before.
LAUNCHGAP_DEVICE void wait_for_columns(float (&sums)[32] LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  static_cast<void>(sums);
  emulated::wait_for_columns(place);
#else
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) asm volatile("" : "+f"(sums[i])::"memory");
#endif
}

}  // namespace launchgap::kernels
