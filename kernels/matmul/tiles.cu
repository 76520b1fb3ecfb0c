// C = A B in the idiom of Kepler: tiles in shared memory.
//
// A block of 256 threads computes 128 x 128 elements of C. Of A and B it needs strips of 128 rows
// and 128 columns, and takes 16 of their depth at a time into shared memory, where each element is
// read 16 times instead of from memory. Each thread keeps 8 x 8 sums in registers, so that 16
// elements from shared memory serve 64 products: it takes 8 cycles to read them for a warp, and 16
// to use them.
//
// Any shape: what is beyond the edge of A or B is 0, and what is beyond that of C is not written.
// Parameters: const float* a (m x k), const float* b (k x n), float* c (m x n), int m, int n,
// int k; rows without gaps. A grid of ceil(m / 128) ceil(n / 128) blocks.
#include "../ladder/instructions.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kTile = 128, kDepth = 16, kThreads = 256, kSide = 16, kSums = 8;

// A lies transposed, so that a thread's rows are side by side for all of a step. When a warp writes
// it, two lanes of 16 have two rows of 16 columns: with rows 130 words apart each has its own bank.
using TileOfA = SharedMatrix<float, kDepth, kTile + 2>;
using TileOfB = SharedMatrix<float, kDepth, kTile>;

// A thread has pairs of rows 32 apart, and fours of columns 64 apart: so the lanes of a warp read
// what lies side by side.
LAUNCHGAP_DEVICE unsigned row_of(unsigned y, unsigned i) {
  return 2 * y + 32 * (i / 2) + i % 2;
}
LAUNCHGAP_DEVICE unsigned column_of(unsigned x, unsigned i) {
  return 4 * x + 64 * (i / 4) + i % 4;
}

}  // namespace

extern "C" __global__ void launchgap_matmul_tiles(const float* a,
                                                  const float* b,
                                                  float* c,
                                                  int m,
                                                  int n,
                                                  int k) {
  LAUNCHGAP_SHARED(TileOfA, tile_a);
  LAUNCHGAP_SHARED(TileOfB, tile_b);
  const unsigned height = static_cast<unsigned>(m), width = static_cast<unsigned>(n);
  const unsigned depth = static_cast<unsigned>(k);
  const TilePlace tile =
      place_of_tile(block_index(), (height + kTile - 1) / kTile, (width + kTile - 1) / kTile);
  const unsigned top = tile.row * kTile, left = tile.column * kTile;
  const unsigned thread = block_thread(), x = thread % kSide, y = thread / kSide;
  float sums[kSums][kSums] = {};

  for (unsigned begin = 0; begin < depth; begin += kDepth) {
    // 16 threads read 16 elements of a row of A that lie side by side; 128 those of B.
#pragma unroll
    for (unsigned p = 0; p < kTile / kSide; ++p) {
      const unsigned i = y + p * kSide;
      const bool inside = top + i < height && begin + x < depth;
      tile_a.set(x, i, inside ? at(a, (top + i) * depth + begin + x) : 0);
    }
#pragma unroll
    for (unsigned p = 0; p < kDepth * kTile / kThreads; ++p) {
      const unsigned i = thread / kTile + p * (kThreads / kTile), column = left + thread % kTile;
      const bool inside = begin + i < depth && column < width;
      tile_b.set(i, thread % kTile, inside ? at(b, (begin + i) * width + column) : 0);
    }
    wait_for_block();
    // All of it at once would take twice as many registers.
#pragma unroll 4
    for (unsigned i = 0; i < kDepth; ++i) {
      Floats<2> from_a[kSums / 2];
      Floats<4> from_b[kSums / 4];
#pragma unroll
      for (unsigned s = 0; s < kSums / 2; ++s)
        from_a[s] = load_floats<2>(tile_a.address(i, row_of(y, 2 * s)));
#pragma unroll
      for (unsigned s = 0; s < kSums / 4; ++s)
        from_b[s] = load_floats<4>(tile_b.address(i, column_of(x, 4 * s)));
#pragma unroll
      for (unsigned r = 0; r < kSums; ++r) {
#pragma unroll
        for (unsigned s = 0; s < kSums; ++s)
          sums[r][s] += from_a[r / 2].values[r % 2] * from_b[s / 4].values[s % 4];
      }
    }
    wait_for_block();  // before the tiles are written again
  }
#pragma unroll
  for (unsigned r = 0; r < kSums; ++r) {
#pragma unroll
    for (unsigned s = 0; s < kSums; ++s) {
      const unsigned row = top + row_of(y, r), column = left + column_of(x, s);
      if (row < height && column < width) at(c, row * width + column) = sums[r][s];
    }
  }
}

}  // namespace launchgap::kernels
