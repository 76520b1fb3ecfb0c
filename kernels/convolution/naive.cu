// A convolution as everybody writes it first: a thread for each element of the output, which goes
// through all channels of its window, and through its filter.
//
// The threads of a warp have neighbouring pixels, so what they read of the images lies side by
// side, and all read the same element of the filter. Yet each product needs two reads, and more
// instructions to find out where and whether it is inside than to compute it; and what neighbours
// share, which is most of their windows, each of them reads for itself.
//
// Any sides. Parameters: const float* images (n, c, h, w), const float* filters (k, c, r, s),
// float* output (n, k, out_h, out_w), each in this order, ConvolutionSides.
#include "windows.h"

namespace launchgap::kernels {

extern "C" __global__ void launchgap_convolution_naive(const float* images,
                                                       const float* filters,
                                                       float* output,
                                                       ConvolutionSides sides) {
  const Sides own(sides);
  const unsigned pixel = global_thread() % own.out_pixels();
  const unsigned filter = global_thread() / own.out_pixels() % own.k;
  const unsigned image = global_thread() / own.out_pixels() / own.k;
  if (image >= own.n) return;
  const Window window = window_of(sides, image * own.out_pixels() + pixel);
  float sum = 0;
  for (unsigned c = 0; c < own.c; ++c) {
    for (unsigned r = 0; r < own.r; ++r) {
      for (unsigned s = 0; s < own.s; ++s) {
        const PlaceInImage place = place_in(window, sides, r, s);
        if (!place.inside) continue;
        sum += at(images, ((image * own.c + c) * own.h + place.row) * own.w + place.column) *
               at(filters, ((filter * own.c + c) * own.r + r) * own.s + s);
      }
    }
  }
  at(output, global_thread()) = sum;
}

}  // namespace launchgap::kernels
