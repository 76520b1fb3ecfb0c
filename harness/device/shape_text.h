// Shapes as text, as the axis `shape` has them: a case's name says all of what is computed.
//
//   4096x16x2048         m x n x k
//   4096x16x2048-nt-b96  B is transposed in memory; a batch of 96
//   32x64x56x56-128x3x3  n x c x h x w of the input, k x r x s of the filters
//   32x64x56x56-64x3x3-s2-p1-d1x2-g64   strides, paddings, dilations (one number, or height and
//                                       width), groups; those that are 1, or 0, are left out
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/core/case_name.h"
#include "harness/device/convolution.h"
#include "harness/device/matmul.h"

namespace launchgap {

/// Of a shape without its types, layout and direction.
std::string shape_text(const MatmulShape& shape);
std::string shape_text(const ConvolutionShape& shape);

/// And back, checked. Throws Error that names what is wrong.
MatmulShape matmul_shape(std::string_view text);
ConvolutionShape convolution_shape(std::string_view text);

/// Throws Error that names what is wrong: a number below 1 (below 0, of paddings), tensors of more
/// bytes than any memory has, filters that are larger than the padded input, channels that the
/// groups do not divide.
void check_shape(const MatmulShape& shape);
void check_shape(const ConvolutionShape& shape);

/// Multiplications and additions of a product or convolution whose case says its shape, or the size
/// of a square product; nothing for another case, or a shape that others write otherwise.
std::optional<double> operations_of(const CaseName& name);

/// A whole number of at least `least` and below 2^31. Throws Error that says what it is instead.
int shape_number(std::string_view text, int least);

}  // namespace launchgap
