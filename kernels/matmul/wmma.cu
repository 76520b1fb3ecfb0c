// C = A B in the idiom of Volta: tensor cores by WMMA.
//
// A warp multiplies 16 x 16 matrices at once: the first tensor cores take FP16 and sum in FP32. A
// block of 4 warps computes 64 x 64 elements of C, each warp 32 x 32 of them as 2 x 2 matrices. The
// strips of A and B come by 32 of their depth into shared memory, through registers: there is no
// other way yet. Which lane reads what is the instruction's affair (wmma.load). It reads several
// rows at once, so rows are 16 bytes longer than they need be: then 8 of them begin in different
// banks.
//
// m and n are multiples of 64, k of 32, and all addresses of 16 bytes. Parameters: const Bits16* a
// (m x k), const Bits16* b (k x n), Bits16* c (m x n), int m, int n, int k; FP16, rows without
// gaps. A grid of m / 64 n / 64 blocks, those of a row of C side by side.
#include "instructions_volta.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kTile = 64, kDepth = 32, kThreads = 128, kMatrix = 16, kWarpTile = 32;
constexpr unsigned kSums = kWarpTile / kMatrix;

using TileOfA = SharedMatrix<Bits16, kTile, kDepth + kEight>;
using TileOfB = SharedMatrix<Bits16, kDepth, kTile + kEight>;
using TileOfC = SharedMatrix<float, kTile, kTile + 4>;

/// Brings `rows` rows of `columns` elements, 8 at a time and thread: 8 threads at once write 16
/// bytes each, of 8 rows.
template <class Tile>
LAUNCHGAP_DEVICE void copy(Tile& to,
                           const Bits16* from,
                           unsigned pitch,
                           unsigned rows,
                           unsigned columns) {
  const unsigned in_row = columns / kEight;
  for (unsigned i = block_thread(); i < rows * in_row; i += kThreads) {
    const unsigned row = i / (8 * in_row) * 8 + i % 8, column = i / 8 % in_row * kEight;
    store_eight(to.address(row, column), load_eight(from + row * pitch + column));
  }
}

}  // namespace

extern "C" __global__ void launchgap_matmul_wmma(const Bits16* a,
                                                 const Bits16* b,
                                                 Bits16* c,
                                                 int m,
                                                 int n,
                                                 int k) {
  LAUNCHGAP_SHARED(TileOfA, tile_a);
  LAUNCHGAP_SHARED(TileOfB, tile_b);
  LAUNCHGAP_SHARED(TileOfC, tile_c);
  const unsigned width = static_cast<unsigned>(n), depth = static_cast<unsigned>(k);
  const unsigned blocks_in_row = width / kTile;
  const unsigned top = block_index() / blocks_in_row * kTile;
  const unsigned left = block_index() % blocks_in_row * kTile;
  if (top >= static_cast<unsigned>(m)) return;
  const unsigned warp = block_thread() / kLanes;
  const unsigned warp_top = warp / 2 * kWarpTile, warp_left = warp % 2 * kWarpTile;
  Sums sums[kSums][kSums];

  for (unsigned begin = 0; begin < depth; begin += kDepth) {
    copy(tile_a, a + top * depth + begin, depth, kTile, kDepth);
    copy(tile_b, b + begin * width + left, width, kDepth, kTile);
    wait_for_block();
#pragma unroll
    for (unsigned i = 0; i < kDepth; i += kMatrix) {
      Halves of_a[kSums], of_b[kSums];
#pragma unroll
      for (unsigned s = 0; s < kSums; ++s) {
        load_a(of_a[s], tile_a.address(warp_top + kMatrix * s, i), TileOfA::kPitch);
        load_b(of_b[s], tile_b.address(i, warp_left + kMatrix * s), TileOfB::kPitch);
      }
#pragma unroll
      for (unsigned r = 0; r < kSums; ++r) {
#pragma unroll
        for (unsigned s = 0; s < kSums; ++s) multiply(sums[r][s], of_a[r], of_b[s]);
      }
    }
    wait_for_block();  // before the tiles are written again
  }

  // Who has which sum is not known, so they go through shared memory on their way to 16 bits.
#pragma unroll
  for (unsigned r = 0; r < kSums; ++r) {
#pragma unroll
    for (unsigned s = 0; s < kSums; ++s)
      store(tile_c.address(warp_top + kMatrix * r, warp_left + kMatrix * s),
            sums[r][s],
            TileOfC::kPitch);
  }
  wait_for_block();
  for (unsigned i = block_thread(); i < kTile * kTile; i += kThreads) {
    const unsigned row = i / kTile, column = i % kTile;
    at(c, (top + row) * width + left + column) = to_half(tile_c.get(row, column));
  }
}

}  // namespace launchgap::kernels
