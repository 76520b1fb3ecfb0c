// A convolution in the idiom of Kepler: a product of matrices of which one is never written down.
//
// Each pixel of the output is a column, and each filter a row: filters (k x c r s) times windows
// (c r s x pixels), where the windows overlap, so that the matrix would be r s times as large as
// the images. So its tiles are made where they are used: a block of 128 threads computes 64 filters
// of 128 pixels, and takes 16 of the depth at a time into shared memory. There each element is read
// 8 or 16 times, and each thread keeps 8 x 8 sums in registers, as in matmul/tiles.cu.
//
// A thread brings what one pixel sees. Which channel, row and column of the window come next is the
// same for all, so that it is counted, not divided.
//
// Any sides. Parameters: const float* images (n, c, h, w), const float* filters (k, c, r, s),
// float* output (n, k, out_h, out_w), each in this order, ConvolutionSides. A grid of ceil(k / 64)
// ceil(pixels / 128) blocks.
#include "windows.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kFilters = 64, kPixels = 128, kDepth = 16, kThreads = 128;
constexpr unsigned kSide = 16, kSums = 8;

// Filters lie transposed, so that a thread's are side by side for all of a step. When a warp writes
// them, two lanes of 16 have two filters of 16 elements: with rows 66 words apart each has its
// bank.
using TileOfFilters = SharedMatrix<float, kDepth, kFilters + 2>;
using TileOfPixels = SharedMatrix<float, kDepth, kPixels>;

// A thread has pairs of filters 16 apart, and fours of pixels 64 apart.
LAUNCHGAP_DEVICE unsigned filter_of(unsigned y, unsigned i) {
  return 2 * y + 16 * (i / 2) + i % 2;
}
LAUNCHGAP_DEVICE unsigned pixel_of(unsigned x, unsigned i) {
  return 4 * x + 64 * (i / 4) + i % 4;
}

/// Where the next element of the depth comes from: the columns of a window, its rows, the channels.
struct Next {
  unsigned c = 0, r = 0, s = 0;

  LAUNCHGAP_DEVICE void advance(const Sides& sides) {
    if (++s < sides.s) return;
    s = 0;
    if (++r < sides.r) return;
    r = 0;
    ++c;
  }
};

}  // namespace

extern "C" __global__ void launchgap_convolution_tiles(const float* images,
                                                       const float* filters,
                                                       float* output,
                                                       ConvolutionSides sides) {
  LAUNCHGAP_SHARED(TileOfFilters, tile_f);
  LAUNCHGAP_SHARED(TileOfPixels, tile_p);
  const Sides own(sides);
  const unsigned depth = own.c * own.r * own.s, pixels = own.n * own.out_pixels();
  const TilePlace tile = place_of_tile(
      block_index(), (own.k + kFilters - 1) / kFilters, (pixels + kPixels - 1) / kPixels);
  const unsigned first_filter = tile.row * kFilters, first_pixel = tile.column * kPixels;
  const unsigned thread = block_thread(), x = thread % kSide, y = thread / kSide;
  const Window window = window_of(sides, first_pixel + thread);
  Next next;
  float sums[kSums][kSums] = {};

  for (unsigned begin = 0; begin < depth; begin += kDepth) {
#pragma unroll
    for (unsigned p = 0; p < kFilters * kSide / kThreads; ++p) {
      const unsigned i = y + p * (kThreads / kSide);
      const bool inside = first_filter + i < own.k && begin + x < depth;
      tile_f.set(x, i, inside ? at(filters, (first_filter + i) * depth + begin + x) : 0);
    }
#pragma unroll
    for (unsigned i = 0; i < kDepth; ++i) {
      const PlaceInImage place = place_in(window, sides, next.r, next.s);
      const bool inside = place.inside && next.c < own.c;
      const unsigned row = (window.image * own.c + next.c) * own.h + place.row;
      tile_p.set(i, thread, inside ? at(images, row * own.w + place.column) : 0);
      next.advance(own);
    }
    wait_for_block();
    // All of it at once would take twice as many registers.
#pragma unroll 4
    for (unsigned i = 0; i < kDepth; ++i) {
      Floats<2> of_filters[kSums / 2];
      Floats<4> of_pixels[kSums / 4];
#pragma unroll
      for (unsigned s = 0; s < kSums / 2; ++s)
        of_filters[s] = load_floats<2>(tile_f.address(i, filter_of(y, 2 * s)));
#pragma unroll
      for (unsigned s = 0; s < kSums / 4; ++s)
        of_pixels[s] = load_floats<4>(tile_p.address(i, pixel_of(x, 4 * s)));
#pragma unroll
      for (unsigned r = 0; r < kSums; ++r) {
#pragma unroll
        for (unsigned s = 0; s < kSums; ++s)
          sums[r][s] += of_filters[r / 2].values[r % 2] * of_pixels[s / 4].values[s % 4];
      }
    }
    wait_for_block();  // before the tiles are written again
  }

#pragma unroll
  for (unsigned s = 0; s < kSums; ++s) {
    const unsigned pixel = first_pixel + pixel_of(x, s);
    const unsigned image = pixel / own.out_pixels(), place = pixel % own.out_pixels();
#pragma unroll
    for (unsigned r = 0; r < kSums; ++r) {
      const unsigned filter = first_filter + filter_of(y, r);
      if (pixel < pixels && filter < own.k)
        at(output, (image * own.k + filter) * own.out_pixels() + place) = sums[r][s];
    }
  }
}

}  // namespace launchgap::kernels
