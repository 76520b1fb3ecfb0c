// The instructions that the rungs are made of, each once: on a GPU by inline assembly, and on the
// CPU, for tests, by what NVIDIA's "Parallel Thread Execution ISA" 9.0 says of it (emulated.h).
#pragma once

#ifdef LAUNCHGAP_EMULATED
#include "kernels/ladder/emulated.h"
#define __global__  // NOLINT(bugprone-reserved-identifier): as CUDA calls it
#define LAUNCHGAP_DEVICE inline
#define LAUNCHGAP_SHARED(Type, name) Type& name = emulated::shared_variable<Type>()
// Where an instruction stands in a rung, for what is reported of it.
#define LAUNCHGAP_PLACE [[maybe_unused]] emulated::Place place = emulated::Place::current()
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
struct alignas(16) Eight {
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
  asm("{ .reg .u64 global; cvta.to.global.u64 global, %4; ld.global.v4.u32 {%0,%1,%2,%3}, "
      "[global]; }"
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

/// Neighbours in shared memory, as one access: 2 or 4 of them, at a multiple of as many.
template <unsigned kCount>
struct Floats {
  float values[kCount];
};
template <unsigned kCount>
LAUNCHGAP_DEVICE Floats<kCount> load_floats(const float* shared LAUNCHGAP_AND_PLACE) {
  static_assert(kCount == 2 || kCount == 4);
  Floats<kCount> floats;
#ifdef LAUNCHGAP_EMULATED
  emulated::read_shared(shared, sizeof floats, place);
  for (unsigned i = 0; i < kCount; ++i) floats.values[i] = shared[i];
#else
  float* v = floats.values;
  if constexpr (kCount == 2) {
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];"
                 : "=f"(v[0]), "=f"(v[1])
                 : "r"(shared_address(shared)));
  } else {
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(shared_address(shared)));
  }
#endif
  return floats;
}

/// Which tile of C a block computes. Blocks that run at the same time have tiles of 8 rows side by
/// side, so that they read the same parts of A and B, which the last cache then has.
struct TilePlace {
  unsigned row, column;
};
LAUNCHGAP_DEVICE TilePlace place_of_tile(unsigned block, unsigned rows, unsigned columns) {
  constexpr unsigned kTogether = 8;
  const unsigned first = block / (kTogether * columns) * kTogether;
  const unsigned height = rows - first < kTogether ? rows - first : kTogether;
  const unsigned own = block % (kTogether * columns);
  return {first + own % height, own / height};
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
