// What the first engine of cuDNN's graph interface costs against the best of what it offers, by our
// own medians, and how often its heuristics offer another one first.
#include "benchmarks/convolution_choosing.h"
#include "benchmarks/products.h"

namespace launchgap {
namespace {

class ConvolutionEngines : public ConvolutionChoosing {
 public:
  explicit ConvolutionEngines(const CaseContext& context)
      : ConvolutionChoosing(context, convolution_of(context.name), "graph") {}

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const auto [selected_ns, best_ns] = times_of({selected(), best()});
    block.keep(begin, selected_ns, best_ns, selected_ns / best_ns);
  }
};

const Registration convolution_engines =
    benchmark("convolution/engines")
        .asks("Which engine does cuDNN's graph interface offer first, and what does that cost?")
        .axis("shape",
              convolution_shape_meaning,
              on_gpus(by_profile(
                  {},
                  {"32x256x14x14-256x3x3-p1"},
                  {"32x64x56x56-64x3x3-p1", "32x256x14x14-256x3x3-p1", "32x2048x7x7-512x1x1"})))
        .axis("direction", convolution_direction_meaning, forward_at_night)
        .axis("layout",
              "of the tensors in memory, with the channels before the pixels, or behind them",
              by_profile(names_of(kTensorLayouts), {"nhwc"}, names_of(kTensorLayouts)))
        .axis("type",
              product_type_meaning,
              by_profile({"fp32", "fp16", "int8", "fp8_e4m3"},
                         {"fp16"},
                         {"fp32", "fp16", "int8", "fp8_e4m3"}))
        .only([](Profile, const DeviceFacts&, const CaseName& name) {
          const ConvolutionShape shape = convolution_of(name);
          if (shape.layout == TensorLayout::nchw)
            return shape.direction == ConvolutionDirection::forward &&
                   shape.type.a == ElementType::fp32;
          const bool narrow = shape.type.is_fp8() || shape.type.a == ElementType::int8;
          return !narrow || shape.direction == ConvolutionDirection::forward;
        })
        .metrics({"selected_ns", "best_ns", "regret"})
        .samples({5, 5})
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const ConvolutionShape shape = convolution_of(name);
          // Up to some twenty candidates, each verified whole and timed; some are ten times slower
          // than the best, and some are compiled when they are made ready.
          return 2 + 20 * convolution_seconds(facts, shape, {2, 5}) +
                 2 * convolution_seconds(facts, shape, sampling);
        })
        .untraced()
        .makes<ConvolutionEngines>();

}  // namespace
}  // namespace launchgap
