// Libraries: products and convolutions are those of the definition, of the operands as they were
// when it was the operation's turn.
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/matmul.h"
#include "harness/device/shape_text.h"
#include "harness/measure/verify.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

using kernels::Distribution;

class GpuMatmul : public Gpu, public testing::WithParamInterface<const char*> {
 protected:
  /// Throws Unsupported.
  void prepare(int m,
               int n,
               int k,
               bool transpose_a = false,
               bool transpose_b = false,
               int batch = 1) {
    shape = {m, n, k, product_type(GetParam()), transpose_a, transpose_b, batch};
    matmul = device->matmul(*stream, shape);
    a = device->allocate(shape.a_bytes()), b = device->allocate(shape.b_bytes()),
    c = device->allocate(shape.c_bytes());
  }
  void prepare(int size) { prepare(size, size, size, false, is_fp8()); }
  bool is_fp8() const { return product_type(GetParam()).is_fp8(); }
  /// What is not written over is seen.
  void spoil_result() {
    stream->fill_bytes(c->address(), kernels::unwritten_byte(shape.type.c), c->bytes());
  }
  /// Small integers, of which sums are exact in every type.
  InputSeeds integers(std::uint64_t first, std::uint64_t second) const {
    return {first, second, Distribution::small_integer, exact_step(shape)};
  }
  void multiply(const InputSeeds& seeds) {
    fill(*device, *stream, *a, seeds.first, shape.type.a, seeds.distribution, seeds.step);
    fill(*device, *stream, *b, seeds.second, shape.type.b, seeds.distribution);
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
      if (is_fp8() && (transpose_a || !transpose_b)) continue;
      // Multiples of 16, as tensor cores want them; and not.
      for (const auto& [m, n, k] : {std::array{96, 80, 336}, std::array{1, 257, 65}}) {
        if (GetParam() == std::string("int8") && k % 4 != 0) continue;
        if (is_fp8() && k % 16 != 0) continue;
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

TEST_P(GpuMatmul, IsThatOfEachOfItsBatch) {
  SKIP_UNLESS_SUPPORTED(prepare(48, 32, 64, false, true, 5));
  const InputSeeds seeds = integers(1, 2);
  spoil_result();
  SKIP_UNLESS_SUPPORTED(multiply(seeds));
  stream->wait();
  EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds)) << matmul->method();
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
  fill(*device, *stream, *a, 9, shape.type.a, first.distribution, first.step);
  stream->wait();
  EXPECT_NO_THROW(verify_matmul(*device, *c, shape, first)) << "A was changed behind it";
  b.reset();
  a.reset();
  const auto again = device->allocate(c->bytes());
  stream->fill_bytes(again->address(), 0, again->bytes());
  stream->wait();
  EXPECT_NO_THROW(verify_matmul(*device, *c, shape, first)) << "it outlives its operands";
}

TEST_P(GpuMatmul, IsTheSameInAnotherStreamAndWithAnotherWorkspace) {
  SKIP_UNLESS_SUPPORTED(prepare(256));
  const InputSeeds seeds = integers(1, 2);
  SKIP_UNLESS_SUPPORTED(multiply(seeds));
  stream->wait();
  const auto other = device->create_stream();
  const auto check = [&](Stream& in) {
    in.fill_bytes(c->address(), kernels::unwritten_byte(shape.type.c), c->bytes());
    matmul->enqueue(*a, *b, *c);
    in.wait();
    EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds)) << matmul->method();
  };
  for (const std::size_t bytes : {std::size_t{16} << 10, std::size_t{32} << 20}) {
    SKIP_UNLESS_SUPPORTED(matmul->set_workspace(bytes));
    check(*stream);
  }
  SKIP_UNLESS_SUPPORTED(matmul->move_to(*other));
  check(*other);
  SKIP_UNLESS_SUPPORTED(matmul->set_workspace(1 << 20));
  check(*other);
}

INSTANTIATE_TEST_SUITE_P(Type,
                         GpuMatmul,
                         testing::Values("fp64",
                                         "fp32_pedantic",
                                         "fp32",
                                         "tf32",
                                         "fp16",
                                         "fp16_acc16",
                                         "bf16",
                                         "int8",
                                         "fp8_e4m3",
                                         "fp8_e5m2"),
                         [](const auto& type) { return std::string(type.param); });

struct ConvolutionKind {
  const char *name, *shape;
};

class GpuConvolution
    : public Gpu,
      public testing::WithParamInterface<std::tuple<ConvolutionKind, ConvolutionDirection>> {
 protected:
  void check(const ConvolutionShape& shape, std::string_view interface) {
    const auto convolution = device->convolution(*stream, shape, interface);
    const auto first = device->allocate(shape.first_bytes()),
               second = device->allocate(shape.second_bytes());
    std::vector<unsigned char> result(shape.result_bytes());
    const std::uint64_t step = convolution->rounds_integers() ? 1 : exact_step(shape);
    const auto bring_in = [&](std::uint64_t seed) {
      fill(*device, *stream, *first, seed, shape.type.a, Distribution::small_integer);
      fill(*device, *stream, *second, 4, shape.type.b, Distribution::small_integer, step);
    };
    const auto verify = [&](std::size_t set, std::uint64_t seed) {
      convolution->read_output(set, result.data());
      EXPECT_NO_THROW(verify_convolution(result.data(),
                                         shape,
                                         {seed, 4, Distribution::small_integer, step},
                                         convolution->rounds_integers()))
          << convolution->method();
    };
    bring_in(3);
    convolution->add_tensors(*first, *second);
    convolution->add_tensors(*first, *second);
    convolution->enqueue(0);
    verify(0, 3);
    bring_in(5);
    convolution->update_tensors(1);
    convolution->enqueue(1);
    verify(1, 5);
    verify(0, 3);
  }
  const std::vector<std::string>& interfaces() const {
    return backend_of(device->facts()).convolution_interfaces;
  }
};

TEST_P(GpuConvolution, IsThatOfTheDefinitionInEveryLayoutAndType) {
  const auto& [kind, direction] = GetParam();
  std::string why;
  for (const std::string& interface : interfaces()) {
    int ran = 0;
    for (const char* type :
         {"fp64", "fp32", "tf32", "fp16", "bf16", "int8", "fp8_e4m3", "fp8_e5m2"}) {
      for (const TensorLayout layout : {TensorLayout::nchw, TensorLayout::nhwc}) {
        ConvolutionShape shape = convolution_shape(kind.shape);
        shape.direction = direction, shape.layout = layout, shape.type = product_type(type);
        try {
          SCOPED_TRACE(interface + " " + type + " " + std::string(name_of(layout)));
          check(shape, interface);
          ++ran;
        } catch (const Unsupported& reason) {
          EXPECT_NE(std::string(reason.what()), "");
          why = reason.what();
        }
      }
    }
    if (ran == 0) GTEST_SKIP() << interface << ": " << why;
  }
}

TEST_P(GpuConvolution, IsThatOfTheDefinitionByWhateverItsLibraryOffers) {
  const auto& [kind, direction] = GetParam();
  std::string why;
  for (const std::string& interface : interfaces()) {
    int ran = 0;
    for (const char* type : {"fp32", "fp16"}) {
      SCOPED_TRACE(interface + " " + type);
      ConvolutionShape shape = convolution_shape(kind.shape);
      shape.direction = direction, shape.type = product_type(type);
      try {
        const auto convolution = device->convolution(*stream, shape, interface);
        const auto first = device->allocate(shape.first_bytes()),
                   second = device->allocate(shape.second_bytes());
        convolution->add_tensors(*first, *second);
        EXPECT_TRUE(convolution->candidates().empty()) << "nothing was asked for";
        const std::size_t selected = convolution->select(Selection::get);
        EXPECT_NE(convolution->selection_call(Selection::get), "");
        EXPECT_EQ(convolution->select(Selection::get), selected) << "by the shape alone";
        const std::vector<ConvolutionCandidate> candidates = convolution->candidates();
        ASSERT_LT(selected, candidates.size());
        std::vector<unsigned char> result(shape.result_bytes());
        for (std::size_t i = 0; i < candidates.size(); ++i) {
          const ConvolutionCandidate& candidate = candidates[i];
          EXPECT_NE(candidate.algorithm, "");
          EXPECT_LE(candidate.workspace_bytes, kSelectionWorkspaceBytes);
          for (std::size_t j = 0; j < i; ++j)
            EXPECT_NE(candidate.algorithm, candidates[j].algorithm);
          convolution->choose(i);
          EXPECT_EQ(convolution->rounds_integers(), candidate.rounds_integers);
          const std::uint64_t step = candidate.rounds_integers ? 1 : exact_step(shape);
          const InputSeeds seeds{i + 1, 4, Distribution::small_integer, step};
          fill(*device, *stream, *first, seeds.first, shape.type.a, seeds.distribution);
          fill(*device, *stream, *second, seeds.second, shape.type.b, seeds.distribution, step);
          stream->wait();
          convolution->update_tensors(0);
          convolution->enqueue(0);
          convolution->read_output(0, result.data());
          EXPECT_NO_THROW(
              verify_convolution(result.data(), shape, seeds, candidate.rounds_integers))
              << candidate.algorithm;
        }
        EXPECT_ANY_THROW(convolution->choose(candidates.size()));
        ++ran;
      } catch (const Unsupported& reason) {
        why = reason.what();
      }
    }
    if (ran == 0) GTEST_SKIP() << interface << ": " << why;
  }
}

class GpuConvolutionInterface : public Gpu {};

TEST_F(GpuConvolutionInterface, IsOneOfThoseThatItsBackendNames) {
  const ConvolutionShape shape{.n = 1, .c = 8, .h = 8, .w = 8, .k = 8};
  EXPECT_THROW(device->convolution(*stream, shape, "no-such-interface"), Unsupported);
  EXPECT_FALSE(backend_of(device->facts()).convolution_interfaces.empty());
}

TEST_F(GpuConvolutionInterface, OfGraphsKeepsFp32AndRunsNothingToSelect) {
  const ConvolutionShape shape = convolution_shape("2x16x14x14-24x3x3-p1");
  std::unique_ptr<Convolution> convolution;
  SKIP_UNLESS_SUPPORTED(convolution = device->convolution(*stream, shape, "graph"));
  convolution->select(Selection::get);
  for (const ConvolutionCandidate& candidate : convolution->candidates()) {
    EXPECT_TRUE(candidate.engine) << candidate.algorithm;
    EXPECT_EQ(candidate.notes.find("tensor cores"), std::string::npos) << candidate.notes;
    EXPECT_EQ(candidate.notes.find("fewer digits"), std::string::npos) << candidate.notes;
  }
  EXPECT_EQ(convolution->selection_call(Selection::find), "");
  EXPECT_THROW(convolution->select(Selection::find), Unsupported);
}

constexpr ConvolutionKind kKinds[] = {
    {"3x3", "2x16x14x14-24x3x3-p1"},
    {"3x3_by_2", "2x16x14x14-24x3x3-s2-p1"},
    {"1x1", "3x8x7x7-16x1x1"},
    {"7x7_by_2", "1x3x32x24-64x7x7-s2-p3"},
    {"dilated", "2x8x13x13-16x3x3-p2-d2"},
    {"grouped", "2x16x9x9-32x3x3-p1-g4"},
};

std::string kind_name(const testing::TestParamInfo<GpuConvolution::ParamType>& kind) {
  return std::string(std::get<0>(kind.param).name) + "_" +
         std::string(name_of(std::get<1>(kind.param)));
}

INSTANTIATE_TEST_SUITE_P(Shape,
                         GpuConvolution,
                         testing::Combine(testing::ValuesIn(kKinds),
                                          testing::Values(ConvolutionDirection::forward,
                                                          ConvolutionDirection::data,
                                                          ConvolutionDirection::filter)),
                         kind_name);

}  // namespace
}  // namespace launchgap
