// A convolution in the idiom of Ampere: tensor cores, and copies that run ahead.
//
// As in tiles.cu it is a product of a matrix that is never written down: windows (pixels x r s c)
// times filters (r s c x k). The channels of a pixel lie side by side, so 8 of them come at once,
// past the registers; what is outside of the image comes as 0, and is not read. A block of 4 warps
// computes 128 pixels of 64 filters, each warp 64 of 32. Both come by 32 channels of one place in
// the window into one of three stages, while the warps multiply what came two stages ago.
//
// ldmatrix reads 8 rows of 16 bytes at once. So that they lie in different banks, piece p of row r
// is at p ^ (r / 2 % 4): a row has 4 pieces, and two rows fill all banks.
//
// c is a multiple of 32 and k of 64, and all addresses are multiples of 16 bytes. Parameters: const
// Bits16* images (n, h, w, c), const Bits16* filters (k, r, s, c), Bits16* output (n, out_h, out_w,
// k), each in this order, ConvolutionSides; bfloat16. A grid of k / 64 ceil(pixels / 128) blocks.
#include "../ladder/instructions_ampere.h"
#include "windows.h"

namespace launchgap::kernels {
namespace {

constexpr unsigned kPixels = 128, kFilters = 64, kDepth = 32, kThreads = 128, kStages = 3;
constexpr unsigned kWarpPixels = 64, kWarpFilters = 32;
constexpr unsigned kRows = kWarpPixels / 16, kColumns = kWarpFilters / 8;  // matrices of its sums
constexpr unsigned kStep = 16;  // of the depth, of one mma
constexpr unsigned kPieces = kDepth / kEight,
                   kAtOnce = kThreads / kPieces;  // rows that are brought

struct Stages {
  SharedMatrix<Bits16, kPixels, kDepth> pixels[kStages];
  SharedMatrix<Bits16, kFilters, kDepth> filters[kStages];
};

/// Where a piece of 8 elements of a row is.
LAUNCHGAP_DEVICE unsigned in_row(unsigned row, unsigned piece) {
  return (piece ^ (row / 2 % 4)) * kEight;
}

}  // namespace

extern "C" __global__ void launchgap_convolution_mma(const Bits16* images,
                                                     const Bits16* filters,
                                                     Bits16* output,
                                                     ConvolutionSides sides) {
  LAUNCHGAP_SHARED(Stages, stages);
  const Sides own(sides);
  const unsigned depth = own.r * own.s * own.c, pixels = own.n * own.out_pixels();
  const TilePlace tile =
      place_of_tile(block_index(), (pixels + kPixels - 1) / kPixels, own.k / kFilters);
  const unsigned first_pixel = tile.row * kPixels, first_filter = tile.column * kFilters;
  const unsigned warp = block_thread() / kLanes, lane = block_thread() % kLanes;
  const unsigned warp_pixel = warp / 2 * kWarpPixels, warp_filter = warp % 2 * kWarpFilters;
  // What this thread brings: a piece of every 32nd row.
  const unsigned own_row = block_thread() / kPieces, own_piece = block_thread() % kPieces;
  Window windows[kPixels / kAtOnce];
#pragma unroll
  for (unsigned p = 0; p < kPixels / kAtOnce; ++p)
    windows[p] = window_of(sides, first_pixel + own_row + p * kAtOnce);
  unsigned next_r = 0, next_s = 0, next_c = 0;
  const unsigned steps = depth / kDepth;
  const auto begin = [&](unsigned step) {
    if (step < steps) {
      const unsigned stage = step % kStages;
#pragma unroll
      for (unsigned p = 0; p < kPixels / kAtOnce; ++p) {
        const unsigned row = own_row + p * kAtOnce;
        const PlaceInImage place = place_in(windows[p], sides, next_r, next_s);
        const unsigned pixel = (windows[p].image * own.h + place.row) * own.w + place.column;
        const unsigned from = place.inside ? pixel * own.c + next_c + own_piece * kEight : 0;
        copy_async_if(
            place.inside, stages.pixels[stage].address(row, in_row(row, own_piece)), images + from);
      }
#pragma unroll
      for (unsigned p = 0; p < kFilters / kAtOnce; ++p) {
        const unsigned row = own_row + p * kAtOnce;
        copy_async(stages.filters[stage].address(row, in_row(row, own_piece)),
                   filters + (first_filter + row) * depth + step * kDepth + own_piece * kEight);
      }
      next_c += kDepth;
      if (next_c == own.c) next_c = 0, ++next_s;
      if (next_s == own.s) next_s = 0, ++next_r;
    }
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
      unsigned of_pixels[kRows][4], of_filters[kColumns / 2][4];
      // A lane names row l % 16 of 16 pixels, and the first or the second 8 of the depth.
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        const unsigned row = warp_pixel + 16 * r + lane % 16, piece = i / kEight + lane / 16;
        load_matrices<false>(of_pixels[r], stages.pixels[stage].address(row, in_row(row, piece)));
      }
      // Both halves of the depth of 8 filters, and then of the next 8.
#pragma unroll
      for (unsigned s = 0; s < kColumns / 2; ++s) {
        const unsigned row = warp_filter + 16 * s + lane / 16 * 8 + lane % 8;
        const unsigned piece = i / kEight + lane / 8 % 2;
        load_matrices<false>(of_filters[s], stages.filters[stage].address(row, in_row(row, piece)));
      }
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
#pragma unroll
        for (unsigned s = 0; s < kColumns; ++s) {
          const unsigned(&both)[4] = of_filters[s / 2];
          const unsigned one[2] = {both[s % 2 * 2], both[s % 2 * 2 + 1]};
          multiply(sums[r][s], of_pixels[r], one);
        }
      }
    }
  }

  auto* const pairs = reinterpret_cast<unsigned*>(output);
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const unsigned pixel = first_pixel + warp_pixel + 16 * r + lane / 4;
#pragma unroll
    for (unsigned s = 0; s < kColumns; ++s) {
      const unsigned filter = first_filter + warp_filter + 8 * s + lane % 4 * 2;
      const float(&own_sums)[4] = sums[r][s];
      if (pixel < pixels)
        at(pairs, (pixel * own.k + filter) / 2) = to_bfloats(own_sums[0], own_sums[1]);
      if (pixel + 8 < pixels)
        at(pairs, ((pixel + 8) * own.k + filter) / 2) = to_bfloats(own_sums[2], own_sums[3]);
    }
  }
}

}  // namespace launchgap::kernels
