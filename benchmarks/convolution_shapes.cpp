// Convolutions in every direction and layout: of networks, or as a user asks for.
#include <string>

#include <fmt/format.h>

#include "benchmarks/products.h"
#include "harness/measure/shapes.h"

namespace launchgap {
namespace {

/// In each layout, shape by shape.
Figure rates_figure(const std::string& direction, const std::string& type) {
  const auto line = [&](const std::string& layout) {
    return FigureLine{
        layout, {{"direction", direction}, {"type", type}, {"layout", layout}}, "tflops"};
  };
  return {.caption = fmt::format("Convolutions {}, {}", direction, type),
          .lines = {line("nchw"), line("nhwc")},
          .each = "shape"};
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
        .only([](Profile profile, const DeviceFacts& facts, const CaseName& name) {
          // A GPU's programs train in 16 bits.
          return profile != Profile::nightly || !is_gpu(facts) || name.at("type") != "fp32" ||
                 (name.at("direction") == "forward" && name.at("layout") == "nchw");
        })
        .metrics({"device_ns", "tflops"})
        .draws({rates_figure("forward", "fp16"),
                rates_figure("data", "fp16"),
                rates_figure("filter", "fp16"),
                rates_figure("forward", "fp32"),
                rates_figure("data", "fp32"),
                rates_figure("filter", "fp32")})
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
