// The instructions that the rungs are made of, each once: on a GPU by inline assembly, and on the
// CPU, for tests, by what NVIDIA's "Parallel Thread Execution ISA" 9.0 says of it (emulated.h).
#pragma once

#ifdef LAUNCHGAP_EMULATED
#include "kernels/matmul/emulated.h"
#define __global__
#define LAUNCHGAP_DEVICE inline
#define LAUNCHGAP_SHARED(Type, name) Type& name = emulated::shared_variable<Type>()
// Where an instruction stands in a rung, for what is reported of it.
#define LAUNCHGAP_PLACE emulated::Place place = emulated::Place::current()
#define LAUNCHGAP_AND_PLACE , LAUNCHGAP_PLACE
#else
#include "../device.h"
#define LAUNCHGAP_DEVICE __device__ inline
#define LAUNCHGAP_SHARED(Type, name) __shared__ __attribute__((aligned(128))) Type name
#define LAUNCHGAP_PLACE
#define LAUNCHGAP_AND_PLACE
#endif

namespace launchgap::kernels {

using Bits16 = unsigned short;  // of a half or of a bfloat16
constexpr unsigned kLanes = 32;

// --- Threads and memory ---

#ifdef LAUNCHGAP_EMULATED
inline unsigned block_index() {
  return emulated::block_index();
}
inline unsigned block_thread() {
  return emulated::thread_index();
}
inline unsigned global_thread() {
  return emulated::block_index() * emulated::block_size() + emulated::thread_index();
}
#endif

/// Every thread of the block has come here, and sees what each of them wrote.
LAUNCHGAP_DEVICE void wait_for_block(LAUNCHGAP_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::barrier(place);
#else
  block_barrier();
#endif
}

/// An element of a matrix in the GPU's memory, of which a test knows where it ends.
template <class Type>
LAUNCHGAP_DEVICE Type& at(Type* matrix, unsigned index LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::check_global(matrix + index, sizeof(Type), alignof(Type), place);
#endif
  return matrix[index];
}

/// A matrix in the memory that the threads of a block share: 32 banks of 4 bytes, which serve a
/// warp at once if it wants no two words of one bank. Its rows are `Pitch` elements apart.
template <class Type, unsigned kRows, unsigned Pitch>
struct SharedMatrix {
  static constexpr unsigned kPitch = Pitch;
  Type elements[kRows * Pitch];

  LAUNCHGAP_DEVICE Type get(unsigned row, unsigned column LAUNCHGAP_AND_PLACE) const {
#ifdef LAUNCHGAP_EMULATED
    emulated::read_shared(&elements[row * Pitch + column], sizeof(Type), place);
#endif
    return elements[row * Pitch + column];
  }
  LAUNCHGAP_DEVICE void set(unsigned row, unsigned column, Type value LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
    emulated::write_shared(&elements[row * Pitch + column], sizeof(Type), place);
#endif
    elements[row * Pitch + column] = value;
  }
  LAUNCHGAP_DEVICE Type* address(unsigned row, unsigned column) {
    return &elements[row * Pitch + column];
  }
};

/// 8 elements of 16 bits, which are read and written at once.
struct Eight {
  unsigned words[4];
};
constexpr unsigned kEight = 8;

#ifndef LAUNCHGAP_EMULATED
/// As instructions want addresses in shared memory.
__device__ inline unsigned shared_address(const void* generic) {
  unsigned address;
  asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }"
      : "=r"(address)
      : "l"(generic));
  return address;
}
#endif

/// From the GPU's memory; the address is a multiple of 16.
LAUNCHGAP_DEVICE Eight load_eight(const Bits16* from LAUNCHGAP_AND_PLACE) {
  Eight eight;
#ifdef LAUNCHGAP_EMULATED
  emulated::check_global(from, sizeof eight, sizeof eight, place);
  eight = *reinterpret_cast<const Eight*>(from);
#else
  unsigned* w = eight.words;
  asm volatile("ld.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
               : "l"(from));
#endif
  return eight;
}
/// Into shared memory; the address is a multiple of 16.
LAUNCHGAP_DEVICE void store_eight(Bits16* shared, const Eight& eight LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::write_shared(shared, sizeof eight, place);
  *reinterpret_cast<Eight*>(shared) = eight;
#else
  const unsigned* w = eight.words;
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(shared)),
               "r"(w[0]),
               "r"(w[1]),
               "r"(w[2]),
               "r"(w[3])
               : "memory");
#endif
}

// --- Formats of 16 bits ---

/// Rounded to nearest even (cvt.rn.f16.f32).
LAUNCHGAP_DEVICE Bits16 to_half(float value) {
#ifdef LAUNCHGAP_EMULATED
  return emulated::to_half(value);
#else
  Bits16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
#endif
}

// --- Volta: tensor cores by WMMA (section 9.7.14.4) ---

/// 16 x 16 elements of FP16, or sums of FP32, in the registers of a warp. Which lane has which only
/// the GPU knows.
struct Halves {
  unsigned registers[8];
};
struct Sums {
  float values[8] = {};
};

/// A part of A, rows `pitch` elements apart. The address is a multiple of 32 bytes.
LAUNCHGAP_DEVICE void load_a(Halves& to, const Bits16* from, unsigned pitch LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::load_halves(to.registers, from, pitch, place);
#else
  unsigned* r = to.registers;
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
               : "=r"(r[0]),
                 "=r"(r[1]),
                 "=r"(r[2]),
                 "=r"(r[3]),
                 "=r"(r[4]),
                 "=r"(r[5]),
                 "=r"(r[6]),
                 "=r"(r[7])
               : "l"(from), "r"(pitch)
               : "memory");
#endif
}
/// The same of B.
LAUNCHGAP_DEVICE void load_b(Halves& to, const Bits16* from, unsigned pitch LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::load_halves(to.registers, from, pitch, place);
#else
  unsigned* r = to.registers;
  asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
               : "=r"(r[0]),
                 "=r"(r[1]),
                 "=r"(r[2]),
                 "=r"(r[3]),
                 "=r"(r[4]),
                 "=r"(r[5]),
                 "=r"(r[6]),
                 "=r"(r[7])
               : "l"(from), "r"(pitch)
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
/// Rows are `pitch` elements apart, and the address is a multiple of 32 bytes.
LAUNCHGAP_DEVICE void store(float* to, const Sums& sums, unsigned pitch LAUNCHGAP_AND_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::store_sums(to, sums.values, pitch, place);
#else
  const float* s = sums.values;
  asm volatile(
      "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;" ::"l"(to),
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

// --- Ampere: copies past the registers, and tensor cores by mma.sync ---

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
LAUNCHGAP_DEVICE void wait_for_copies(LAUNCHGAP_PLACE) {
#ifdef LAUNCHGAP_EMULATED
  emulated::wait_for_copies(kGroups, place);
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

/// Two numbers as bfloat16, rounded to nearest even, the first in the lower half.
LAUNCHGAP_DEVICE unsigned to_bfloats(float first, float second) {
#ifdef LAUNCHGAP_EMULATED
  return emulated::to_bfloats(first, second);
#else
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
#endif
}

}  // namespace launchgap::kernels
