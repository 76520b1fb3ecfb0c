#include "tests/fake_cuda/convolution.h"

#include <algorithm>
#include <sstream>

#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/product.h"

namespace launchgap::fake {
namespace {

std::string signature_of(const ForwardConvolution& v) {
  std::ostringstream text;
  text << std::hexfloat << "convolution";
  for (const auto& e : {v.input, v.filter, v.output})
    text << ' ' << e.n << ' ' << e.c << ' ' << e.h << ' ' << e.w;
  for (const auto layout : {v.input_layout, v.filter_layout, v.output_layout})
    text << ' ' << static_cast<int>(layout);
  text << ' ' << static_cast<int>(v.type) << ' ' << v.pad_h << ' ' << v.pad_w << ' ' << v.stride_h
       << ' ' << v.stride_w << ' ' << v.dilation_h << ' ' << v.dilation_w << ' ' << v.alpha << ' '
       << v.x << ' ' << v.w << ' ' << v.y << ' ' << v.tf32;
  return text.str();
}

/// The convolution as a product of input patches (one row per output pixel) and filters (one column
/// per output channel); the inner index runs over channels, then the filter's rows and columns.
Product product_of(const ForwardConvolution& v) {
  const std::size_t taps = v.filter.h * v.filter.w;
  Product product{v.output.n * v.output.h * v.output.w, v.output.c, v.input.c * taps, {}, {}, {}};
  product.load_a_row =
      [=](std::size_t pixel, std::size_t first, std::size_t count, float* to, std::size_t stride) {
        const std::size_t image = pixel / (v.output.h * v.output.w);
        const std::size_t row = pixel / v.output.w % v.output.h;
        const std::size_t column = pixel % v.output.w;
        std::size_t c = first / taps;
        std::size_t r = first % taps / v.filter.w;
        std::size_t s = first % v.filter.w;
        for (std::size_t i = 0; i < count; ++i) {
          // Above or left of the input the differences wrap around and are out of bounds, too.
          const std::size_t h = row * v.stride_h + r * v.dilation_h - v.pad_h;
          const std::size_t w = column * v.stride_w + s * v.dilation_w - v.pad_w;
          to[i * stride] =
              h < v.input.h && w < v.input.w
                  ? load_operand(v.x, v.input.index(v.input_layout, image, c, h, w), v.type, v.tf32)
                  : 0.0f;
          if (++s < v.filter.w) continue;
          s = 0;
          if (++r < v.filter.h) continue;
          r = 0;
          ++c;
        }
      };
  product.load_b_column = [=](std::size_t channel,
                              std::size_t first,
                              std::size_t count,
                              float* to,
                              std::size_t stride) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t inner = first + i;
      const std::size_t index = v.filter.index(
          v.filter_layout, channel, inner / taps, inner % taps / v.filter.w, inner % v.filter.w);
      to[i * stride] = load_operand(v.w, index, v.type, v.tf32);
    }
  };
  product.store = [=](std::size_t pixel, std::size_t channel, float sum) {
    const std::size_t index = v.output.index(v.output_layout,
                                             pixel / (v.output.h * v.output.w),
                                             channel,
                                             pixel / v.output.w % v.output.h,
                                             pixel % v.output.w);
    float value = v.alpha * sum;
    if (v.beta != 0) value += v.beta * kernels::load_element(v.y, index, v.type);
    kernels::store_element(v.y, index, v.type, value);
  };
  return product;
}

void compute_elements(const ForwardConvolution& v, std::size_t first, std::size_t last) {
  const Product product = product_of(v);
  const std::size_t pixels = v.output.h * v.output.w;
  for (std::size_t index = first; index < last; ++index) {
    if (v.output_layout == Layout::nchw) {
      const std::size_t plane = index / pixels;
      compute_element(product, plane / v.output.c * pixels + index % pixels, plane % v.output.c);
    } else {
      compute_element(product, index / v.output.c, index % v.output.c);
    }
  }
}

}  // namespace

Operation convolution_operation(const ForwardConvolution& v) {
  const std::size_t size = kernels::element_bytes(v.type);
  Operation operation;
  operation.reads = {range_of(v.x, v.input.count() * size), range_of(v.w, v.filter.count() * size)};
  const Range y = range_of(v.y, v.output.count() * size);
  operation.writes = {y};
  if (v.beta == 0) {
    operation.signature = signature_of(v);
  } else {
    operation.reads.push_back(y);
  }
  operation.compute = [v, size, total = y.bytes](std::size_t begin, std::size_t end) {
    if (begin == 0 && end == total) return compute_product(product_of(v), 0, v.output.c);
    compute_elements(v, begin / size, (end + size - 1) / size);
  };
  return operation;
}

}  // namespace launchgap::fake
