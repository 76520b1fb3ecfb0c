// C = A B in the idiom of Ampere: mma.sync, ldmatrix, and copies that run ahead.
//
// A block of 4 warps computes 128 x 128 elements of C, each warp 64 x 64 of them, whose sums fill
// half of its registers. The strips of A and B come by 32 of their depth into one of three stages
// of shared memory, past the registers (cp.async), while the warps multiply what came two stages
// ago: nobody waits for memory as long as it keeps up.
//
// ldmatrix reads 8 rows of 16 bytes at once. So that they lie in different banks, the pieces of 16
// bytes of a row are exchanged by the row's number: of A, whose rows have 4 pieces and of which two
// fill all banks, piece p of row r is at p ^ (r / 2 % 4); of B, whose rows have 16, at p ^ (r % 8).
//
// m and n are multiples of 128, k of 32, and all addresses of 16 bytes. Parameters: const Bits16* a
// (m x k), const Bits16* b (k x n), Bits16* c (m x n), int m, int n, int k; bfloat16, rows without
// gaps. A grid of m / 128 n / 128 blocks.
#include "../ladder/instructions_ampere.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kTile = 128, kDepth = 32, kThreads = 128, kStages = 3, kWarpTile = 64;
constexpr unsigned kRows = kWarpTile / 16, kColumns = kWarpTile / 8;  // matrices of a warp's sums
constexpr unsigned kStep = 16;                                        // of the depth, of one mma

struct Stages {
  SharedMatrix<Bits16, kTile, kDepth> a[kStages];
  SharedMatrix<Bits16, kDepth, kTile> b[kStages];
};

/// Where a piece of 8 elements of a row is.
LAUNCHGAP_DEVICE unsigned in_a(unsigned row, unsigned piece) {
  return (piece ^ (row / 2 % 4)) * kEight;
}
LAUNCHGAP_DEVICE unsigned in_b(unsigned row, unsigned piece) {
  return (piece ^ (row % 8)) * kEight;
}

/// Begins to bring a stage; a and b are where the block's strips begin.
LAUNCHGAP_DEVICE void begin_stage(Stages& stages,
                                  unsigned stage,
                                  const Bits16* a,
                                  const Bits16* b,
                                  unsigned depth,
                                  unsigned width) {
  constexpr unsigned kPiecesOfA = kDepth / kEight, kPiecesOfB = kTile / kEight;
#pragma unroll
  for (unsigned p = 0; p < kTile * kPiecesOfA / kThreads; ++p) {
    const unsigned i = block_thread() + p * kThreads;
    const unsigned row = i / kPiecesOfA, piece = i % kPiecesOfA;
    copy_async(stages.a[stage].address(row, in_a(row, piece)), a + row * depth + piece * kEight);
  }
#pragma unroll
  for (unsigned p = 0; p < kDepth * kPiecesOfB / kThreads; ++p) {
    const unsigned i = block_thread() + p * kThreads;
    const unsigned row = i / kPiecesOfB, piece = i % kPiecesOfB;
    copy_async(stages.b[stage].address(row, in_b(row, piece)), b + row * width + piece * kEight);
  }
}

}  // namespace

extern "C" __global__ void launchgap_matmul_mma(const Bits16* a,
                                                const Bits16* b,
                                                Bits16* c,
                                                int m,
                                                int n,
                                                int k) {
  LAUNCHGAP_SHARED(Stages, stages);
  const unsigned width = static_cast<unsigned>(n), depth = static_cast<unsigned>(k);
  const TilePlace tile =
      place_of_tile(block_index(), static_cast<unsigned>(m) / kTile, width / kTile);
  const unsigned top = tile.row * kTile, left = tile.column * kTile;
  const unsigned warp = block_thread() / kLanes, lane = block_thread() % kLanes;
  const unsigned warp_top = warp / 2 * kWarpTile, warp_left = warp % 2 * kWarpTile;
  const unsigned steps = depth / kDepth;
  const auto begin = [&](unsigned step) {
    if (step < steps)
      begin_stage(stages,
                  step % kStages,
                  a + top * depth + step * kDepth,
                  b + step * kDepth * width + left,
                  depth,
                  width);
    commit_copies();  // also of nothing: a group for each step
  };
  float sums[kRows][kColumns][4] = {};

  for (unsigned step = 0; step < kStages - 1; ++step) begin(step);
  for (unsigned step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 2>();  // what this thread brought of this step
    wait_for_block();                // what the others did; and nobody reads the stage before it,
    begin(step + kStages - 1);       // which is the next to be filled
    const unsigned stage = step % kStages;
#pragma unroll
    for (unsigned i = 0; i < kDepth; i += kStep) {
      unsigned of_a[kRows][4], of_b[kColumns / 2][4];
      // A lane names row l % 16 of 16, and of its 16 columns the first or the second 8.
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        const unsigned row = warp_top + 16 * r + lane % 16;
        load_matrices<false>(of_a[r],
                             stages.a[stage].address(row, in_a(row, i / kEight + lane / 16)));
      }
      // Rows of B are columns of what mma.sync takes, hence transposed; two matrices at once.
#pragma unroll
      for (unsigned s = 0; s < kColumns / 2; ++s) {
        const unsigned row = i + lane % 16, piece = (warp_left + 16 * s) / kEight + lane / 16;
        load_matrices<true>(of_b[s], stages.b[stage].address(row, in_b(row, piece)));
      }
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
#pragma unroll
        for (unsigned s = 0; s < kColumns; ++s) {
          const unsigned(&both)[4] = of_b[s / 2];
          const unsigned own[2] = {both[s % 2 * 2], both[s % 2 * 2 + 1]};
          multiply(sums[r][s], of_a[r], own);
        }
      }
    }
  }

#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
#pragma unroll
    for (unsigned s = 0; s < kColumns; ++s) {
      const unsigned row = top + warp_top + 16 * r + lane / 4;
      const unsigned column = left + warp_left + 8 * s + lane % 4 * 2;
      auto* const pairs = reinterpret_cast<unsigned*>(c);
      at(pairs, (row * width + column) / 2) = to_bfloats(sums[r][s][0], sums[r][s][1]);
      at(pairs, ((row + 8) * width + column) / 2) = to_bfloats(sums[r][s][2], sums[r][s][3]);
    }
  }
}

}  // namespace launchgap::kernels
