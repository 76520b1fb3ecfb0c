// C = A B in the idiom of Kepler: tiles in shared memory.
//
// A block of 256 threads computes 64 x 64 elements of C. Of A and B it needs strips of 64 rows and
// 64 columns, and takes 16 of their depth at a time into shared memory, where each element is read
// 16 times instead of from memory. Each thread keeps 4 x 4 sums in registers, so that 8 reads from
// shared memory serve 16 products: shared memory would be the limit otherwise.
//
// Any shape: what is beyond the edge of A or B is 0, and what is beyond that of C is not written.
// Parameters: const float* a (m x k), const float* b (k x n), float* c (m x n), int m, int n,
// int k; rows without gaps. A grid of ceil(m / 64) ceil(n / 64) blocks, those of a row of C side by
// side.
#include "instructions.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kTile = 64, kDepth = 16, kThreads = 256, kSide = 16, kSums = 4;

// A lies transposed, so that a thread's rows are side by side for all of a step. When a warp writes
// it, two lanes of 16 have two rows of 16 columns: with rows 66 words apart each has its own bank.
using TileOfA = SharedMatrix<float, kDepth, kTile + 2>;
using TileOfB = SharedMatrix<float, kDepth, kTile>;

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
  const unsigned blocks_in_row = (width + kTile - 1) / kTile;
  const unsigned top = block_index() / blocks_in_row * kTile;
  const unsigned left = block_index() % blocks_in_row * kTile;
  const unsigned thread = block_thread(), x = thread % kSide, y = thread / kSide;
  float sums[kSums][kSums] = {};

  for (unsigned begin = 0; begin < depth; begin += kDepth) {
    // 16 threads read 16 elements of a row of A that lie side by side; 64 those of B.
    for (unsigned i = y; i < kTile; i += kSide) {
      const bool inside = top + i < height && begin + x < depth;
      tile_a.set(x, i, inside ? at(a, (top + i) * depth + begin + x) : 0);
    }
    for (unsigned i = thread / kTile; i < kDepth; i += kThreads / kTile) {
      const unsigned column = left + thread % kTile;
      const bool inside = begin + i < depth && column < width;
      tile_b.set(i, thread % kTile, inside ? at(b, (begin + i) * width + column) : 0);
    }
    wait_for_block();
    // A thread's rows are 4 y to 4 y + 3, and its columns x, x + 16, x + 32 and x + 48, so that a
    // warp reads 16 columns that lie side by side.
#pragma unroll
    for (unsigned i = 0; i < kDepth; ++i) {
      float from_a[kSums], from_b[kSums];
#pragma unroll
      for (unsigned s = 0; s < kSums; ++s) {
        from_a[s] = tile_a.get(i, kSums * y + s);
        from_b[s] = tile_b.get(i, x + kSide * s);
      }
#pragma unroll
      for (unsigned r = 0; r < kSums; ++r) {
#pragma unroll
        for (unsigned s = 0; s < kSums; ++s) sums[r][s] += from_a[r] * from_b[s];
      }
    }
    wait_for_block();  // before the tiles are written again
  }
#pragma unroll
  for (unsigned r = 0; r < kSums; ++r) {
#pragma unroll
    for (unsigned s = 0; s < kSums; ++s) {
      const unsigned row = top + kSums * y + r, column = left + x + kSide * s;
      if (row < height && column < width) at(c, row * width + column) = sums[r][s];
    }
  }
}

}  // namespace launchgap::kernels
