// The forward convolution of the device's own library, on the layers of ResNet-50.
#include <algorithm>

#include "benchmarks/operands.h"
#include "benchmarks/products.h"
#include "harness/core/errors.h"
#include "harness/measure/shapes.h"

namespace launchgap {
namespace {

const std::vector<NamedShape<ConvolutionShape>>& resnet50() {
  static const auto layers = convolution_set("resnet50");
  return layers;
}

ConvolutionShape layer_of(const CaseName& name) {
  const auto layer = std::ranges::find_if(
      resnet50(), [&](const auto& candidate) { return name.at("layer") == candidate.name; });
  if (layer == resnet50().end()) throw Error("there is no layer '{}'", name.at("layer"));
  ConvolutionShape shape = layer->shape;
  shape.n = static_cast<int>(name.number("n"));
  shape.type = product_type(name.at("type"));
  return shape;
}

/// `quick` takes one layer of each kind; the others all of them.
std::vector<std::string> layers(Profile profile, const DeviceFacts&) {
  if (profile == Profile::quick)
    return {"conv1_7x7", "conv2_3x3", "conv3_1x1_512", "conv4_3x3", "conv5_1x1_2048"};
  std::vector<std::string> names;
  for (const auto& layer : resnet50()) names.emplace_back(layer.name);
  return names;
}

constexpr std::uint64_t kLargestBatch = 1 << 16;

const Registration convolution_library =
    benchmark("convolution/library")
        .asks(
            "How fast does the device's own library compute the convolutions of ResNet-50, in "
            "NCHW?")
        .axis("layer", "of ResNet-50, by its stage, filter and channels", layers)
        .size_axis("n",
                   "images of a batch",
                   by_profile({"1", "8"}, {"1", "32"}, {"1", "8", "32"}),
                   kLargestBatch)
        .axis("type", product_type_meaning, convolution_types)
        .axis("cache", cache_meaning, by_profile({"warm"}, {"warm"}, {"warm", "cold"}))
        .metrics({"device_ns", "tflops"})
        .headline({"convolution fp32, best", "type:fp32", "tflops", Headline::Of::best_median})
        .samples([](Profile profile, const CaseName& name) {
          return Sampling{profile == Profile::quick ? 3 : 5, name.number("n") > 8 ? 3 : 5};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          return convolution_seconds(facts, layer_of(name), sampling);
        })
        .traced_as(TracedAs::gated_work)
        .makes([](const CaseContext& context) {
          return timed_convolution(context, layer_of(context.name), {context.name.at("cache"), {}});
        });

}  // namespace
}  // namespace launchgap
