#include "benchmarks/ladder.h"

#include <gmock/gmock.h>

#include "benchmarks/products.h"
#include "harness/device/shape_text.h"

namespace launchgap {
namespace {

using namespace testing;

class RungOnHost : public Test {
 protected:
  std::unique_ptr<Device> device = open_device("host", "host");
  std::unique_ptr<Stream> stream = device->create_stream({});

  ConvolutionShape shape_of(const char* text) {
    ConvolutionShape shape = convolution_shape(text);
    shape.layout = TensorLayout::nchw;
    return shape;
  }
  void expect_refused(const std::string& rung, const ConvolutionShape& shape, const char* why) {
    EXPECT_THAT([&] { rung_convolution(*device, *stream, shape, rung); },
                ThrowsMessage<Unsupported>(HasSubstr(why)));
  }
};

TEST_F(RungOnHost, ConvolvesEveryShapeRight) {
  for (const char* const rung : {"naive", "tiles"}) {
    for (const char* const shape : {"2x10x9x7-6x3x2-s2-p1",
                                    "3x5x4x6-7x1x1",
                                    "2x4x11x9-6x3x3-s1x2-p2x0-d2x1",
                                    "1x1x1x1-1x1x1"}) {
      const auto convolution =
          make_convolution(*device, *stream, 1, shape_of(shape), {.cache = "warm", .rung = rung});
      EXPECT_NO_THROW(convolution->prepare(*stream, kernels::Distribution::uniform)) << shape;
      EXPECT_NO_THROW(convolution->verify_sample()) << shape;
    }
  }
}

TEST_F(RungOnHost, SaysWhatItDoesNotTake) {
  ConvolutionShape shape = shape_of("1x33x9x9-65x3x3-s2-p1");
  expect_refused("none", shape, "no rung 'none'");
  shape.direction = ConvolutionDirection::data;
  expect_refused("tiles", shape, "forward");
  shape.direction = ConvolutionDirection::forward;
  shape.layout = TensorLayout::nhwc;
  expect_refused("tiles", shape, "rung tiles convolves in NCHW");
  shape.type = product_type("bf16");
  expect_refused("tiles", shape, "rung tiles convolves fp32, and no bf16");
  expect_refused("mma",
                 shape,
                 "rung mma takes 32 channels at a time, and 64 filters: 33 and 65 are no "
                 "multiples of that");
  shape.c = 32, shape.k = 64;
  expect_refused("mma", shape, "rung mma is about a GPU's units");
  shape.groups = 2;
  expect_refused("mma", shape, "all channels with all filters");
  shape = shape_of("4096x1024x32x32-64x1x1");
  expect_refused("naive", shape, "at most 2147483647 elements");
}

}  // namespace
}  // namespace launchgap
