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
#include "../ladder/instructions_volta.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kTile = 64, kDepth = 32, kThreads = 128, kMatrix = 16, kWarpTile = 32;
constexpr unsigned kSums = kWarpTile / kMatrix;

using TileOfA = SharedMatrix<Bits16, kTile, kDepth + kEight>;
using TileOfB = SharedMatrix<Bits16, kDepth, kTile + kEight>;
using TileOfC = SharedMatrix<float, kTile, kTile + 4>;

/// What a thread brings of a strip: 8 elements at a time, of which 8 threads at once write those of
/// 8 rows.
template <unsigned kRows, unsigned kColumns>
struct Pieces {
  static constexpr unsigned kInRow = kColumns / kEight, kCount = kRows * kInRow / kThreads;
  Eight pieces[kCount];

  LAUNCHGAP_DEVICE static unsigned row(unsigned i) { return i / (8 * kInRow) * 8 + i % 8; }
  LAUNCHGAP_DEVICE static unsigned column(unsigned i) { return i / 8 % kInRow * kEight; }
  LAUNCHGAP_DEVICE void load(const Bits16* from, unsigned pitch) {
#pragma unroll
    for (unsigned p = 0; p < kCount; ++p) {
      const unsigned i = block_thread() + p * kThreads;
      pieces[p] = load_eight(from + row(i) * pitch + column(i));
    }
  }
  template <class Tile>
  LAUNCHGAP_DEVICE void store(Tile& to) const {
#pragma unroll
    for (unsigned p = 0; p < kCount; ++p) {
      const unsigned i = block_thread() + p * kThreads;
      store_eight(to.address(row(i), column(i)), pieces[p]);
    }
  }
};

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
  Pieces<kTile, kDepth> of_strip_a;
  Pieces<kDepth, kTile> of_strip_b;
  of_strip_a.load(a + top * depth, depth);
  of_strip_b.load(b + left, width);

  for (unsigned begin = 0; begin < depth; begin += kDepth) {
    of_strip_a.store(tile_a);
    of_strip_b.store(tile_b);
    wait_for_block();
    // The next strips are on their way to registers while these are multiplied.
    if (begin + kDepth < depth) {
      of_strip_a.load(a + top * depth + begin + kDepth, depth);
      of_strip_b.load(b + (begin + kDepth) * width + left, width);
    }
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
