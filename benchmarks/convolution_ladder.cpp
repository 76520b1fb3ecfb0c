// One convolution in the idiom of each generation, beside the device's library on the same
// operands.
#include "benchmarks/ladder.h"
#include "benchmarks/products.h"
#include "harness/device/shape_text.h"
#include "kernels/convolution/convolution_rungs.h"

namespace launchgap {
namespace {

std::vector<std::string> shapes(Profile profile, const DeviceFacts& facts) {
  if (!is_gpu(facts)) return {"1x64x28x28-64x3x3-p1"};
  if (profile == Profile::quick) return {"32x64x56x56-64x3x3-p1"};
  return {"32x64x56x56-64x3x3-p1", "32x256x14x14-256x3x3-p1"};
}

/// A rung's tensors are in its order; the library may keep them in its own.
ConvolutionShape ladder_shape(const CaseName& name) {
  ConvolutionShape shape = convolution_shape(name.at("shape"));
  shape.type = product_type(name.at("type"));
  if (const auto* const rung = kernels::find_convolution_rung(name.at("rung")))
    shape.layout = rung->channels_last ? TensorLayout::nhwc : TensorLayout::nchw;
  return shape;
}

const Registration convolution_ladder =
    benchmark("convolution/ladder")
        .asks("What does a convolution cost in the idiom of each generation, beside the library's?")
        .axis("rung",
              "`naive`: a thread for each element; `tiles` (Kepler): a product whose tiles are "
              "made in shared memory, and on the host rows of pixels, channel by channel; `mma` "
              "(Ampere): by "
              "tensor cores; `library`: the device's own (kernels/convolution)",
              [](Profile, const DeviceFacts& facts) {
                return names_of_rungs(kernels::convolution_rungs(), facts);
              })
        .axis("shape", convolution_shape_meaning, shapes)
        .axis("type",
              product_type_meaning,
              [](Profile, const DeviceFacts& facts) {
                return types_of_rungs(kernels::convolution_rungs(), facts);
              })
        .only([](Profile, const DeviceFacts&, const CaseName& name) {
          const auto* const rung = kernels::find_convolution_rung(name.at("rung"));
          return !rung || rung->type_name == name.at("type");
        })
        .metrics({"device_ns", "tflops"})
        .samples({3, 5}, {5, 5})
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const auto* const rung = kernels::find_convolution_rung(name.at("rung"));
          return convolution_seconds(facts, ladder_shape(name), sampling) / (rung ? rung->rate : 1);
        })
        .traced_as(TracedAs::gated_work)
        .makes([](const CaseContext& context) {
          OperationOptions options;
          if (context.name.at("rung") != kLibraryRung) options.rung = context.name.at("rung");
          return timed_convolution(context, ladder_shape(context.name), options);
        });

}  // namespace
}  // namespace launchgap
