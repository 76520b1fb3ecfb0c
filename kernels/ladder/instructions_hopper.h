// Hopper: copies of boxes that memory hardware makes (TMA), mbarriers, and wgmma.
#pragma once

#include "instructions.h"

namespace launchgap::kernels {

/// A matrix in the GPU's memory, as cuTensorMapEncodeTiled describes it: parts of it come by name.
#ifdef LAUNCHGAP_EMULATED
using emulated::TensorMap;
#define LAUNCHGAP_TENSOR_MAP(name) const TensorMap& name
#define LAUNCHGAP_THREADS(count)
#else
struct TensorMap {
  alignas(128) unsigned long long opaque[16];
};
#define LAUNCHGAP_TENSOR_MAP(name) const __grid_constant__ TensorMap name
// All that a block has, and one block on a multiprocessor: it decides how many registers there are.
#define LAUNCHGAP_THREADS(count) __launch_bounds__(count, 1)
#endif

/// All of the shared memory that a launch asks for; it begins at a multiple of 1024.
template <class Type>
LAUNCHGAP_DEVICE Type& launched_memory() {
#ifdef LAUNCHGAP_EMULATED
  return *static_cast<Type*>(emulated::launched_memory(sizeof(Type)));
#else
  extern __shared__ __attribute__((aligned(1024))) unsigned char launched[];
  return *reinterpret_cast<Type*>(launched);
#endif
}

/// Counts arrivals, and bytes that copies bring. When all of a phase are there, the next begins.
struct Mbarrier {
  unsigned long long state;
};

LAUNCHGAP_DEVICE void initialise(Mbarrier& mbarrier, unsigned arrivals LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::init_mbarrier(&mbarrier, arrivals, place);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&mbarrier)),
               "r"(arrivals)
               : "memory");
#endif
}
/// The hardware that copies sees the mbarriers that the thread has initialised.
LAUNCHGAP_DEVICE void fence_mbarriers() {
#ifdef LAUNCHGAP_EMULATED
  emulated::fence_mbarriers();
#else
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
LAUNCHGAP_DEVICE void arrive(Mbarrier& mbarrier LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::arrive(&mbarrier, 0, place);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&mbarrier))
               : "memory");
#endif
}
/// And so many bytes are to come in this phase.
LAUNCHGAP_DEVICE void arrive_expecting(Mbarrier& mbarrier, unsigned bytes LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::arrive(&mbarrier, bytes, place);
#else
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&mbarrier)),
      "r"(bytes)
      : "memory");
#endif
}
/// Until the phase with this parity is over: 0 for the first, 1 for the second, and so on in turn.
LAUNCHGAP_DEVICE void wait_for(Mbarrier& mbarrier, unsigned parity LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::wait_for_mbarrier(&mbarrier, parity, place);
#else
  asm volatile(
      "{ .reg .pred over;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again; }" ::"r"(shared_address(&mbarrier)),
      "r"(parity)
      : "memory");
#endif
}

/// Of a warp whose lanes are all here, one. The compiler knows that it is one, and asks hardware
/// once for what this one asks for (elect.sync, 9.7.13.15).
LAUNCHGAP_DEVICE bool is_elected(LAUNCHGAP_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  return emulated::is_elected(place);
#else
  unsigned is;
  asm volatile("{ .reg .pred is; elect.sync _|is, 0xffffffff; selp.u32 %0, 1, 0, is; }" : "=r"(is));
  return is != 0;
#endif
}

/// Brings a box of the matrix, whose first element is in column x of row y, and tells the mbarrier
/// (9.7.9.27.1.2). One thread asks for all of it.
LAUNCHGAP_DEVICE void copy_box(void* shared,
                               const TensorMap& matrix,
                               unsigned x,
                               unsigned y,
                               Mbarrier& mbarrier LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::copy_box(shared, matrix, static_cast<int>(x), static_cast<int>(y), &mbarrier, place);
#else
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(shared)),
      "l"(&matrix),
      "r"(x),
      "r"(y),
      "r"(shared_address(&mbarrier))
      : "memory");
#endif
}

/// An operand of wgmma: where it begins in shared memory, and how far apart its parts are, in
/// bytes; with the 128-byte swizzle (9.7.15.5.1.2.2).
LAUNCHGAP_DEVICE unsigned long long operand(const void* shared, unsigned leading, unsigned stride) {
#ifdef LAUNCHGAP_EMULATED
  const unsigned address = emulated::shared_offset(shared);
#else
  const unsigned address = shared_address(shared);
#endif
  const auto part = [](unsigned bytes) {
    return static_cast<unsigned long long>(bytes >> 4 & 0x3FFF);
  };
  return part(address) | part(leading) << 16 | part(stride) << 32 | 1ull << 62;
}

/// Before the first wgmma, and whenever the thread has used its sums otherwise.
LAUNCHGAP_DEVICE void fence_group(LAUNCHGAP_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::fence_group(place);
#else
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
LAUNCHGAP_DEVICE void commit_group(LAUNCHGAP_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::commit_group(place);
#else
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Until all but the last kGroups that were committed are over.
template <unsigned kGroups>
LAUNCHGAP_DEVICE void wait_for_group(LAUNCHGAP_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::wait_for_group(kGroups, place);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
#endif
}
/// sums (64 x 256, FP32) += a (64 x 16) b (16 x 256) of bfloat16, by a group of four warps, while
/// they go on (9.7.15.5.2). Warp w has rows 16 w to 16 w + 15; of each 8 columns a lane has as many
/// as of mma.sync's sums. A's rows lie along the depth, those of B along n.
LAUNCHGAP_DEVICE void multiply_in_group(float (&sums)[128],
                                        unsigned long long a,
                                        unsigned long long b LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::multiply_in_group(sums, 256, a, b, place);
#else
  float* s = sums;
  // clang-format off
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
      "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
      "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
      "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"
      "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
      "}, %128, %129, 1, 1, 1, 0, 1;"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]),
        "+f"(s[8]), "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]),
        "+f"(s[16]), "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]), "+f"(s[21]), "+f"(s[22]), "+f"(s[23]),
        "+f"(s[24]), "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31]),
        "+f"(s[32]), "+f"(s[33]), "+f"(s[34]), "+f"(s[35]), "+f"(s[36]), "+f"(s[37]), "+f"(s[38]), "+f"(s[39]),
        "+f"(s[40]), "+f"(s[41]), "+f"(s[42]), "+f"(s[43]), "+f"(s[44]), "+f"(s[45]), "+f"(s[46]), "+f"(s[47]),
        "+f"(s[48]), "+f"(s[49]), "+f"(s[50]), "+f"(s[51]), "+f"(s[52]), "+f"(s[53]), "+f"(s[54]), "+f"(s[55]),
        "+f"(s[56]), "+f"(s[57]), "+f"(s[58]), "+f"(s[59]), "+f"(s[60]), "+f"(s[61]), "+f"(s[62]), "+f"(s[63]),
        "+f"(s[64]), "+f"(s[65]), "+f"(s[66]), "+f"(s[67]), "+f"(s[68]), "+f"(s[69]), "+f"(s[70]), "+f"(s[71]),
        "+f"(s[72]), "+f"(s[73]), "+f"(s[74]), "+f"(s[75]), "+f"(s[76]), "+f"(s[77]), "+f"(s[78]), "+f"(s[79]),
        "+f"(s[80]), "+f"(s[81]), "+f"(s[82]), "+f"(s[83]), "+f"(s[84]), "+f"(s[85]), "+f"(s[86]), "+f"(s[87]),
        "+f"(s[88]), "+f"(s[89]), "+f"(s[90]), "+f"(s[91]), "+f"(s[92]), "+f"(s[93]), "+f"(s[94]), "+f"(s[95]),
        "+f"(s[96]), "+f"(s[97]), "+f"(s[98]), "+f"(s[99]), "+f"(s[100]), "+f"(s[101]), "+f"(s[102]), "+f"(s[103]),
        "+f"(s[104]), "+f"(s[105]), "+f"(s[106]), "+f"(s[107]), "+f"(s[108]), "+f"(s[109]), "+f"(s[110]), "+f"(s[111]),
        "+f"(s[112]), "+f"(s[113]), "+f"(s[114]), "+f"(s[115]), "+f"(s[116]), "+f"(s[117]), "+f"(s[118]), "+f"(s[119]),
        "+f"(s[120]), "+f"(s[121]), "+f"(s[122]), "+f"(s[123]), "+f"(s[124]), "+f"(s[125]), "+f"(s[126]), "+f"(s[127])
      : "l"(a), "l"(b));
  // clang-format on
#endif
}

/// The compiler uses the sums after the wait before this, and not before it.
LAUNCHGAP_DEVICE void settle(float (&sums)[128]) {
#ifdef LAUNCHGAP_EMULATED
  static_cast<void>(sums);
#else
#pragma unroll
  for (unsigned i = 0; i < 128; ++i) asm volatile("" : "+f"(sums[i])::"memory");
#endif
}

/// Of the registers that a block has, this group of four warps takes so many for each thread, more
/// than it has or fewer.
template <unsigned kRegisters>
LAUNCHGAP_DEVICE void take_registers() {
#ifndef LAUNCHGAP_EMULATED
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}
template <unsigned kRegisters>
LAUNCHGAP_DEVICE void leave_registers() {
#ifndef LAUNCHGAP_EMULATED
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

}  // namespace launchgap::kernels
