// Where a convolution's products come from: the window of an image that a pixel of the output sees.
#pragma once

#include "../ladder/instructions.h"
#include "sides.h"

namespace launchgap::kernels {

/// The sides, as the kernels count.
struct Sides {
  unsigned n, c, h, w, k, r, s, out_h, out_w;

  LAUNCHGAP_DEVICE explicit Sides(const ConvolutionSides& of)
      : n(unsigned(of.n)),
        c(unsigned(of.c)),
        h(unsigned(of.h)),
        w(unsigned(of.w)),
        k(unsigned(of.k)),
        r(unsigned(of.r)),
        s(unsigned(of.s)),
        out_h(unsigned(of.out_h)),
        out_w(unsigned(of.out_w)) {}
  LAUNCHGAP_DEVICE unsigned out_pixels() const { return out_h * out_w; }  // of an image
};

/// Where a pixel's window begins: left of the image and above it are numbers beyond its end, since
/// they do not go below 0.
struct Window {
  unsigned image, top, left;
};

/// Of pixel `i` of all images' output, row by row; of one that there is not, all is outside.
LAUNCHGAP_DEVICE Window window_of(const ConvolutionSides& sides, unsigned i) {
  constexpr unsigned kFarOutside = 1u << 31;
  const Sides own(sides);
  const unsigned image = i / own.out_pixels(), pixel = i % own.out_pixels();
  if (image >= own.n) return {0, kFarOutside, 0};
  return {image,
          pixel / own.out_w * unsigned(sides.stride_h) - unsigned(sides.pad_h),
          pixel % own.out_w * unsigned(sides.stride_w) - unsigned(sides.pad_w)};
}

/// A place in the image, or in what is around it, where all is 0.
struct PlaceInImage {
  unsigned row, column;
  bool inside;
};
LAUNCHGAP_DEVICE PlaceInImage place_in(const Window& window,
                                       const ConvolutionSides& sides,
                                       unsigned r,
                                       unsigned s) {
  const unsigned row = window.top + r * unsigned(sides.dilation_h);
  const unsigned column = window.left + s * unsigned(sides.dilation_w);
  return {row, column, row < unsigned(sides.h) && column < unsigned(sides.w)};
}

}  // namespace launchgap::kernels
