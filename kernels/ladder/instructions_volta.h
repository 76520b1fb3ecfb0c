// Volta: tensor cores by WMMA (PTX ISA 9.7.14.4).
#pragma once

#include "instructions.h"

namespace launchgap::kernels {

/// 16 x 16 elements of FP16, or sums of FP32, in the registers of a warp. Which lane has which only
/// the GPU knows.
struct Halves {
  unsigned registers[8];
};
struct Sums {
  float values[8] = {};
};

/// A part of A in shared memory, rows `pitch` elements apart. The address is a multiple of 32
/// bytes.
LAUNCHGAP_DEVICE void load_a(Halves& to, const Bits16* from, unsigned pitch LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::load_halves(to.registers, from, pitch, place);
#else
  unsigned* r = to.registers;
  asm volatile(
      "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
      : "=r"(r[0]),
        "=r"(r[1]),
        "=r"(r[2]),
        "=r"(r[3]),
        "=r"(r[4]),
        "=r"(r[5]),
        "=r"(r[6]),
        "=r"(r[7])
      : "r"(shared_address(from)), "r"(pitch)
      : "memory");
#endif
}
/// The same of B.
LAUNCHGAP_DEVICE void load_b(Halves& to, const Bits16* from, unsigned pitch LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::load_halves(to.registers, from, pitch, place);
#else
  unsigned* r = to.registers;
  asm volatile(
      "wmma.load.b.sync.aligned.row.m16n16k16.shared.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
      : "=r"(r[0]),
        "=r"(r[1]),
        "=r"(r[2]),
        "=r"(r[3]),
        "=r"(r[4]),
        "=r"(r[5]),
        "=r"(r[6]),
        "=r"(r[7])
      : "r"(shared_address(from)), "r"(pitch)
      : "memory");
#endif
}
/// sums += a b.
LAUNCHGAP_DEVICE void multiply(Sums& sums, const Halves& a, const Halves& b LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::multiply_halves(sums.values, a.registers, b.registers, place);
#else
  float* s = sums.values;
  const unsigned *x = a.registers, *y = b.registers;
  asm volatile(
      "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, "
      "{%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23}, "
      "{%0,%1,%2,%3,%4,%5,%6,%7};"
      : "+f"(s[0]),
        "+f"(s[1]),
        "+f"(s[2]),
        "+f"(s[3]),
        "+f"(s[4]),
        "+f"(s[5]),
        "+f"(s[6]),
        "+f"(s[7])
      : "r"(x[0]),
        "r"(x[1]),
        "r"(x[2]),
        "r"(x[3]),
        "r"(x[4]),
        "r"(x[5]),
        "r"(x[6]),
        "r"(x[7]),
        "r"(y[0]),
        "r"(y[1]),
        "r"(y[2]),
        "r"(y[3]),
        "r"(y[4]),
        "r"(y[5]),
        "r"(y[6]),
        "r"(y[7]));
#endif
}
/// Into shared memory; rows are `pitch` elements apart, and the address is a multiple of 32 bytes.
LAUNCHGAP_DEVICE void store(float* to, const Sums& sums, unsigned pitch LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::store_sums(to, sums.values, pitch, place);
#else
  const float* s = sums.values;
  asm volatile(
      "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;" ::
          "r"(shared_address(to)),
      "f"(s[0]),
      "f"(s[1]),
      "f"(s[2]),
      "f"(s[3]),
      "f"(s[4]),
      "f"(s[5]),
      "f"(s[6]),
      "f"(s[7]),
      "r"(pitch)
      : "memory");
#endif
}

}  // namespace launchgap::kernels
