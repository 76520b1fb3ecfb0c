// Convolutions in every direction and layout: of networks, or as a user asks for.
#include <fmt/format.h>

#include "benchmarks/products.h"
#include "harness/core/errors.h"
#include "harness/device/shape_text.h"
#include "harness/measure/shapes.h"

namespace launchgap {
namespace {

constexpr ConvolutionDirection kDirections[] = {ConvolutionDirection::forward,
                                                ConvolutionDirection::data,
                                                ConvolutionDirection::filter};
constexpr TensorLayout kLayouts[] = {TensorLayout::nchw, TensorLayout::nhwc};

template <class Value, std::size_t kCount>
std::vector<std::string> names_of(const Value (&values)[kCount]) {
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(name_of(value));
  return names;
}

template <class Value, std::size_t kCount>
Value named(const Value (&values)[kCount], const std::string& name) {
  for (const Value value : values) {
    if (name_of(value) == name) return value;
  }
  throw Error(fmt::format("'{}' is none of its axis's values", name));
}

ConvolutionShape convolution_of(const CaseName& name) {
  ConvolutionShape shape = convolution_shape(name.at("shape"));
  shape.direction = named(kDirections, name.at("direction"));
  shape.layout = named(kLayouts, name.at("layout"));
  shape.type = product_type(name.at("type"));
  return shape;
}

const Registration convolution_shapes_benchmark =
    benchmark("convolution/shapes")
        .asks("How fast are convolutions in each direction and layout?")
        .axis("shape",
              "n x c x h x w of the input, k x r x s of the filters; `s`, `p`, `d`, `g`: strides, "
              "paddings, dilations, groups (docs/shapes.md)",
              convolution_shape_axis)
        .axis("direction",
              "`forward`: the output; `data`: the gradient of the input; `filter`: that of the "
              "filters",
              names_of(kDirections))
        .axis("layout",
              "of the tensors in memory, with the channels before the pixels, or behind them; a "
              "CPU's filters are in the library's own order",
              names_of(kLayouts))
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
