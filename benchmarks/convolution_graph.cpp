// Convolutions by cuDNN's graph interface, with the engine that its heuristics offer first: by the
// interface that also has INT8 and FP8.
#include "benchmarks/products.h"

namespace launchgap {
namespace {

const Registration convolution_graph =
    benchmark("convolution/graph")
        .asks(
            "How fast are convolutions by cuDNN's graph interface, with the engine that it offers "
            "first?")
        .axis("shape",
              convolution_shape_meaning,
              on_gpus(by_profile({},
                                 {"32x64x56x56-64x3x3-p1"},
                                 {"32x3x224x224-64x7x7-s2-p3",
                                  "32x64x56x56-64x3x3-p1",
                                  "32x256x14x14-256x3x3-p1",
                                  "32x2048x7x7-512x1x1",
                                  "32x128x56x56-128x3x3-p1-g32",
                                  "8x512x28x28-512x3x3-p2-d2"})))
        .axis("direction", convolution_direction_meaning, forward_at_night)
        .axis("layout",
              "of the tensors in memory, with the channels before the pixels, or behind them",
              names_of(kTensorLayouts))
        .axis("type",
              product_type_meaning,
              by_profile({"fp64", "fp32", "tf32", "fp16", "bf16", "int8", "fp8_e4m3", "fp8_e5m2"},
                         {"fp32", "fp16"},
                         {"fp64", "fp32", "tf32", "fp16", "bf16", "int8", "fp8_e4m3", "fp8_e5m2"}))
        .only([](Profile, const DeviceFacts&, const CaseName& name) {
          const ConvolutionShape shape = convolution_of(name);
          const std::string& type = name.at("type");
          // Gradients in the types that most are trained in; INT8 and FP8 in NHWC alone.
          if (type != "fp32" && type != "fp16" && shape.direction != ConvolutionDirection::forward)
            return false;
          const bool narrow = shape.type.is_fp8() || shape.type.a == ElementType::int8;
          return !narrow || shape.layout == TensorLayout::nhwc;
        })
        .metrics({"device_ns", "tflops"})
        .samples([](Profile, const CaseName& name) {
          return Sampling{5, convolution_of(name).operations() > 1e10 ? 3 : 5};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          // An engine may be compiled when it is made ready.
          return 0.2 + convolution_seconds(facts, convolution_of(name), sampling);
        })
        .traced_as(TracedAs::gated_work)
        .makes([](const CaseContext& context) {
          return timed_convolution(
              context, convolution_of(context.name), {.cache = "warm", .by = "graph"});
        });

}  // namespace
}  // namespace launchgap
