// Libraries: products and convolutions are those of the definition, of the operands as they were
// when it was the operation's turn.
#include <array>
#include <vector>

#include "harness/device/convolution.h"
#include "harness/device/matmul.h"
#include "harness/measure/verify.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

using kernels::Distribution;

struct MatmulType {
  const char* name;
  ElementType type;
  bool tf32;
};

class GpuMatmul : public Gpu, public testing::WithParamInterface<MatmulType> {
 protected:
  /// Throws Unsupported.
  void prepare(int m, int n, int k, bool transpose_a = false, bool transpose_b = false) {
    shape = {m, n, k, GetParam().type, GetParam().tf32, transpose_a, transpose_b};
    matmul = device->matmul(*stream, shape);
    const std::size_t bytes = kernels::element_bytes(shape.type);
    a = device->allocate(shape.a_count() * bytes), b = device->allocate(shape.b_count() * bytes),
    c = device->allocate(shape.c_count() * bytes);
  }
  void prepare(int size) { prepare(size, size, size); }
  /// NaNs in every type: what is not written over is seen.
  void spoil_result() { stream->fill_bytes(c->address(), 0xFF, c->bytes()); }
  /// Small integers, of which sums are exact in every type.
  InputSeeds integers(std::uint64_t first, std::uint64_t second) const {
    return {first, second, Distribution::small_integer, exact_step(shape)};
  }
  void multiply(const InputSeeds& seeds) {
    fill(*device, *stream, *a, seeds.first, shape.type, seeds.distribution, seeds.step);
    fill(*device, *stream, *b, seeds.second, shape.type, seeds.distribution);
    matmul->enqueue(*a, *b, *c);
  }
  MatmulShape shape;
  std::unique_ptr<Matmul> matmul;
  std::unique_ptr<Buffer> a, b, c;
};

TEST_P(GpuMatmul, IsExactOnIntegersAndWithinRoundingElsewhere) {
  for (const int size : {64, 256, 320}) {
    SKIP_UNLESS_SUPPORTED(prepare(size));
    EXPECT_FALSE(matmul->method().empty());
    for (const Distribution distribution : {Distribution::small_integer, Distribution::uniform}) {
      const InputSeeds seeds = distribution == Distribution::small_integer
                                   ? integers(1, 2)
                                   : InputSeeds{1, 2, distribution};
      spoil_result();
      SKIP_UNLESS_SUPPORTED(multiply(seeds));
      stream->wait();
      if (distribution == Distribution::small_integer) {
        EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds));
      }
      EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
    }
  }
}

TEST_P(GpuMatmul, IsThatOfItsShapeWhicheverWayItsOperandsLie) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      // Multiples of 8, as tensor cores want them; and not.
      for (const auto& [m, n, k] : {std::array{96, 72, 328}, std::array{1, 257, 65}}) {
        SKIP_UNLESS_SUPPORTED(prepare(m, n, k, transpose_a, transpose_b));
        const InputSeeds seeds = integers(1, 2);
        spoil_result();
        SKIP_UNLESS_SUPPORTED(multiply(seeds));
        stream->wait();
        EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds))
            << m << " x " << n << " x " << k << transpose_a << transpose_b;
      }
    }
  }
}

TEST_P(GpuMatmul, IsOfItsOperandsAsTheyAreInTheOrderOfTheStream) {
  SKIP_UNLESS_SUPPORTED(prepare(256));
  const InputSeeds first = integers(1, 2), second = integers(3, 2);
  SKIP_UNLESS_SUPPORTED(multiply(first));
  multiply(second);
  stream->wait();
  EXPECT_NO_THROW(verify_matmul(*device, *c, shape, second));
  EXPECT_THROW(verify_matmul(*device, *c, shape, first), WrongResult) << "the test would see it";
  spoil_result();
  multiply(first);
  fill(*device, *stream, *a, 9, shape.type, first.distribution, first.step);
  stream->wait();
  EXPECT_NO_THROW(verify_matmul(*device, *c, shape, first)) << "A was changed behind it";
  b.reset();
  a.reset();
  const auto again = device->allocate(c->bytes());
  stream->fill_bytes(again->address(), 0, again->bytes());
  stream->wait();
  EXPECT_NO_THROW(verify_matmul(*device, *c, shape, first)) << "it outlives its operands";
}

INSTANTIATE_TEST_SUITE_P(Type,
                         GpuMatmul,
                         testing::Values(MatmulType{"fp32", ElementType::fp32, false},
                                         MatmulType{"tf32", ElementType::fp32, true},
                                         MatmulType{"fp16", ElementType::fp16, false},
                                         MatmulType{"bf16", ElementType::bf16, false}),
                         [](const auto& type) { return std::string(type.param.name); });

struct ConvolutionKind {
  const char* name;
  int n, c, h, w, k, r, stride, pad;
};

class GpuConvolution : public Gpu, public testing::WithParamInterface<ConvolutionKind> {};

TEST_P(GpuConvolution, IsThatOfTheDefinition) {
  const auto& [name, n, c, h, w, k, r, stride, pad] = GetParam();
  int ran = 0;
  std::string why;
  for (const ElementType type : {ElementType::fp32, ElementType::fp16}) {
    ConvolutionShape shape;
    shape.n = n, shape.c = c, shape.h = h, shape.w = w, shape.k = k, shape.r = shape.s = r;
    shape.stride = stride, shape.pad = pad, shape.type = type;
    try {
      const auto convolution = device->convolution(*stream, shape);
      const std::size_t bytes = kernels::element_bytes(type);
      const auto input = device->allocate(shape.input_count() * bytes),
                 filter = device->allocate(shape.filter_count() * bytes);
      std::vector<unsigned char> output(shape.output_count() * bytes);
      const std::uint64_t step = convolution->rounds_integers() ? 1 : exact_step(shape);
      const auto bring_in = [&](std::uint64_t seed) {
        fill(*device, *stream, *input, seed, type, Distribution::small_integer);
        fill(*device, *stream, *filter, 4, type, Distribution::small_integer, step);
      };
      const auto verify = [&](std::size_t set, std::uint64_t seed) {
        convolution->read_output(set, output.data());
        EXPECT_NO_THROW(verify_convolution(output.data(),
                                           shape,
                                           {seed, 4, Distribution::small_integer, step},
                                           convolution->rounds_integers()))
            << convolution->method();
      };
      bring_in(3);
      convolution->add_tensors(*input, *filter);
      convolution->add_tensors(*input, *filter);
      convolution->enqueue(0);
      verify(0, 3);
      bring_in(5);
      convolution->update_tensors(1);
      convolution->enqueue(1);
      verify(1, 5);
      verify(0, 3);
      ++ran;
    } catch (const Unsupported& reason) {
      why = reason.what();
    }
  }
  if (ran == 0) GTEST_SKIP() << why;
}

INSTANTIATE_TEST_SUITE_P(Shape,
                         GpuConvolution,
                         testing::Values(ConvolutionKind{"3x3", 2, 16, 14, 14, 24, 3, 1, 1},
                                         ConvolutionKind{"3x3_by_2", 2, 16, 14, 14, 24, 3, 2, 1},
                                         ConvolutionKind{"1x1", 3, 8, 7, 7, 16, 1, 1, 0},
                                         ConvolutionKind{"7x7_by_2", 1, 3, 32, 24, 64, 7, 2, 3}),
                         [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace launchgap
