// The sides of a convolution's tensors, as its kernels take them.
#pragma once

namespace launchgap::kernels {

/// n images of h x w pixels with c channels become such of out_h x out_w pixels with k channels, by
/// k filters of r x s pixels. No groups.
struct ConvolutionSides {
  int n, c, h, w;
  int k, r, s;
  int stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int out_h = 0, out_w = 0;
};

}  // namespace launchgap::kernels
