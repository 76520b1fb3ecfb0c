// Which algorithm a library selects for a convolution, how often it selects another one, and what
// its selections cost against the best of what it offers, by our own medians.
#include <vector>

#include "benchmarks/convolution_choosing.h"
#include "benchmarks/products.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

class ConvolutionSelection : public ConvolutionChoosing {
 public:
  explicit ConvolutionSelection(const CaseContext& context)
      : ConvolutionChoosing(context, convolution_of(context.name)) {}

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const auto [selected_ns, found_ns, best_ns] = times_of({selected(), found(), best()});
    block.keep(begin, selected_ns, found_ns, best_ns, selected_ns / best_ns, found_ns / best_ns);
  }
};

void advise_on_selection(Adviser& adviser) {
  std::vector<Comparison> comparisons;
  const auto& rows = adviser.rows;
  for (const std::string& shape : rows.values({}, "selected_ns", "shape")) {
    for (const std::string& direction :
         rows.values({{"shape", shape}}, "selected_ns", "direction")) {
      for (const std::string& type :
           rows.values({{"shape", shape}, {"direction", direction}}, "selected_ns", "type")) {
        const Params which = {{"shape", shape}, {"direction", direction}, {"type", type}};
        if (const auto comparison =
                compare(rows.find(which, "selected_ns"), rows.find(which, "best_ns")))
          comparisons.push_back(*comparison);
      }
    }
  }
  adviser.judge(comparisons,
                {.of = "of a convolution by the algorithm that the library selects",
                 .than = "of one by the best that it offers",
                 .if_more = "Choose the algorithm yourself where a convolution counts: time what "
                            "the library offers (cudnnFindConvolution…Ex)",
                 .if_less = "Leave the selection to the library",
                 .if_same = "The library's own selection costs nothing",
                 .less = Severity::note});
}

/// Each selection's time beside that of the best candidate, shape by shape.
Figure selection_figure(const std::string& direction, const std::string& type) {
  const std::vector<std::pair<std::string, std::string>> params = {{"direction", direction},
                                                                   {"type", type}};
  return {.caption = fmt::format("Times the best candidate's time, {}, {}", direction, type),
          .lines = {{"selected", params, "regret"}, {"found", params, "find_regret"}},
          .each = "shape"};
}

const Registration convolution_selection =
    benchmark("convolution/selection")
        .asks("Which algorithm does the library select, and what does that cost?")
        .axis("shape",
              convolution_shape_meaning,
              on_gpus(by_profile(
                  {"1x128x14x14-128x3x3-p1"},
                  {"32x256x14x14-256x3x3-p1"},
                  {"32x64x56x56-64x3x3-p1", "32x256x14x14-256x3x3-p1", "32x2048x7x7-512x1x1"})))
        .axis("direction",
              convolution_direction_meaning,
              by_profile({"forward"}, names_of(kConvolutionDirections)))
        .axis("type", product_type_meaning, by_profile({"fp32"}, {"fp16"}, {"fp32", "fp16"}))
        .brings(device_time(
            "selected_ns",
            "A convolution by the algorithm that most of 20 selections have first which run "
            "nothing (cudnnGet…, or the heuristics of cuDNN's graph interface).",
            "launching",
            "the time"))
        .brings(device_time(
            "found_ns",
            "A convolution by the algorithm that most of 20 selections have first which run and "
            "time what there is (cudnnFind…); missing where the library has none.",
            "launching",
            "the time"))
        .brings(derived_ratio("find_regret",
                              "found_ns divided by best_ns, sample by sample.",
                              "",
                              "the regret of finding"))
        .metrics({"selected_ns", "found_ns", "best_ns", "regret", "find_regret"})
        .advises(advise_on_selection)
        .draws({selection_figure("forward", "fp16"),
                selection_figure("data", "fp16"),
                selection_figure("filter", "fp16"),
                selection_figure("forward", "fp32")})
        .samples({3, 5}, {5, 5})
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const ConvolutionShape shape = convolution_of(name);
          // Some ten candidates, each verified whole and timed; each of 20 finds runs all of them a
          // few times, and some are ten times slower than the best.
          return 20 * convolution_seconds(facts, shape, {2, 5}) +
                 3 * convolution_seconds(facts, shape, sampling);
        })
        .untraced()
        .makes<ConvolutionSelection>();

}  // namespace
}  // namespace launchgap
