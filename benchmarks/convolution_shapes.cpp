// Convolutions in every direction and layout: of networks, or as a user asks for.
#include "benchmarks/products.h"
#include "harness/device/shape_text.h"
#include "harness/measure/shapes.h"

namespace launchgap {
namespace {

ConvolutionShape convolution_of(const CaseName& name) {
  ConvolutionShape shape = convolution_shape(name.at("shape"));
  shape.direction = named(kConvolutionDirections, name.at("direction"));
  shape.layout = named(kTensorLayouts, name.at("layout"));
  shape.type = product_type(name.at("type"));
  return shape;
}

const Registration convolution_shapes_benchmark =
    benchmark("convolution/shapes")
        .asks("How fast are convolutions in each direction and layout?")
        .axis("shape", convolution_shape_meaning, convolution_shape_axis)
        .axis("direction", convolution_direction_meaning, names_of(kConvolutionDirections))
        .axis("layout",
              "of the tensors in memory, with the channels before the pixels, or behind them; a "
              "CPU's filters are in the library's own order",
              names_of(kTensorLayouts))
        .axis("type",
              product_type_meaning,
              [](Profile profile, const DeviceFacts& facts) {
                if (profile == Profile::quick) return std::vector<std::string>{"fp32"};
                if (profile == Profile::nightly && is_gpu(facts))
                  return std::vector<std::string>{"fp32", "fp16"};
                return backend_of(facts).convolution_types;
              })
        .metrics({"device_ns", "tflops"})
        .samples([](Profile profile, const CaseName& name) {
          return Sampling{profile == Profile::quick ? 3 : 5,
                          convolution_of(name).operations() > 1e10 ? 3 : 5};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          return convolution_seconds(facts, convolution_of(name), sampling);
        })
        .traced_as(TracedAs::gated_work)
        .makes([](const CaseContext& context) {
          return timed_convolution(context, convolution_of(context.name));
        });

}  // namespace
}  // namespace launchgap
