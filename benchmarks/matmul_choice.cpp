// What the library's own choice of an algorithm costs: its default beside the best of what it
// offers, by our own medians.
#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/choosing.h"
#include "benchmarks/operands.h"
#include "benchmarks/products.h"
#include "harness/core/errors.h"
#include "harness/device/shape_text.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

using kernels::Distribution;

class MatmulChoice : public Case {
 public:
  explicit MatmulChoice(const CaseContext& context)
      : device_(context.device),
        shape_(shape_of(context.name)),
        seeds_{derive_seed(context.seed, "a"),
               derive_seed(context.seed, "b"),
               Distribution::small_integer,
               exact_step(shape_)},
        exact_(shape_, seeds_),
        stream_(device_.create_stream()),
        timer_(device_, *stream_),
        usual_(device_.matmul(*stream_, shape_)),
        offering_(device_.matmul(*stream_, shape_, "cublaslt")) {
    operand_sets(device_, "warm", shape_.a_bytes() + shape_.b_bytes() + shape_.c_bytes());
    a_ = device_.allocate(shape_.a_bytes());
    b_ = device_.allocate(shape_.b_bytes());
    c_ = device_.allocate(shape_.c_bytes());
    try {
      tuned_ = device_.matmul(*stream_, shape_, kTunedMatmul);
    } catch (const Unsupported&) {
      // The others can do without.
    }
    verify_all(context.name.text());
    fill_operands(Distribution::uniform);
    usual_->enqueue(*a_, *b_, *c_);
    stream_->wait();
    operations_ = timer_.operations_for_one_ms(warm_up_seconds(device_),
                                               [this](int) { usual_->enqueue(*a_, *b_, *c_); });
    choose();
  }

  /// All ways, one right after the other, each time in another order.
  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    double ns[kWays] = {};
    turns_.take(kWays, [&](int way) { ns[way] = time(static_cast<Way>(way)); });
    block.keep(begin,
               ns[kUsual],
               ns[kFirst],
               ns[kBest],
               ns[kTuned],
               ns[kUsual] / ns[kBest],
               ns[kFirst] / ns[kBest],
               ns[kTuned] / ns[kBest]);
  }
  int operations_per_sample() const override { return operations_; }

  void verify_timed_work() override {
    InputSeeds seeds = seeds_;
    seeds.distribution = Distribution::uniform;
    seeds.step = 1;
    verify_timed_matmul(device_, *c_, shape_, seeds);
  }

  std::vector<Choice> choices() const override { return choices_; }

  std::string method() const override {
    return fmt::format("default: {}; best: {}; {} per sample{}",
                       usual_->method(),
                       offering_->method(),
                       operations_,
                       remark_on_gate(device_));
  }

 private:
  enum Way { kUsual, kFirst, kBest, kTuned, kWays };

  static MatmulShape shape_of(const CaseName& name) {
    MatmulShape shape = matmul_shape(name.at("shape"));
    shape.type = product_type(name.at("type"));
    return shape;
  }

  void fill_operands(Distribution distribution) {
    const std::uint64_t step = distribution == Distribution::small_integer ? seeds_.step : 1;
    fill(device_, *stream_, *a_, seeds_.first, shape_.type.a, distribution, step);
    fill(device_, *stream_, *b_, seeds_.second, shape_.type.b, distribution);
  }

  /// Throws WrongResult, or what the call throws.
  void verify(Matmul& matmul) {
    // A result that was never written must not pass for one, nor the one before.
    stream_->fill_bytes(c_->address(), kernels::unwritten_byte(shape_.type.c), c_->bytes());
    matmul.enqueue(*a_, *b_, *c_);
    stream_->wait();
    exact_.verify(device_, *c_);
  }

  /// The default must be right. A candidate that is wrong or fails is named and never chosen.
  void verify_all(const std::string& case_name) {
    fill_operands(Distribution::small_integer);
    verify(*usual_);
    if (tuned_) {
      try {
        verify(*tuned_);
      } catch (const Unsupported&) {
        tuned_.reset();
      } catch (const LibraryError& error) {
        if (error.sticky()) throw;
        tuned_.reset();
      }
    }
    const std::vector<MatmulCandidate> candidates = offering_->candidates();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Choice choice;
      choice.case_name = case_name;
      choice.by = "cuBLASLt";
      choice.candidate = static_cast<int>(i);
      choice.algorithm = candidates[i].algorithm;
      choice.tile = candidates[i].tile;
      choice.stages = candidates[i].stages;
      choice.split = candidates[i].split;
      choice.waves = candidates[i].waves;
      choice.workspace_bytes = candidates[i].workspace_bytes;
      judge(choice, [&] {
        offering_->choose(i);
        verify(*offering_);
      });
      choices_.push_back(std::move(choice));
    }
  }

  /// By medians of samples that no sample of the case is among.
  void choose() {
    best_ = choose_best(choices_, [this](std::size_t i) {
      offering_->choose(i);
      return timer_.time(operations_, [this](int) { enqueue(*offering_); });
    });
    first_ = static_cast<std::size_t>(std::ranges::find_if(choices_, is_sound) - choices_.begin());
    offering_->choose(best_);
  }

  void enqueue(Matmul& matmul) { matmul.enqueue(*a_, *b_, *c_); }

  double time(Way way) {
    if (way == kTuned && !tuned_) return Block::kMissing;
    if (way == kFirst || way == kBest) offering_->choose(way == kFirst ? first_ : best_);
    Matmul& matmul = way == kUsual ? *usual_ : way == kTuned ? *tuned_ : *offering_;
    const double ns = timer_.time(operations_, [&](int) { enqueue(matmul); });
    offering_->choose(best_);
    return ns;
  }

  Device& device_;
  MatmulShape shape_;
  InputSeeds seeds_;
  ExactProduct exact_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  std::unique_ptr<Matmul> usual_, offering_, tuned_;
  std::unique_ptr<Buffer> a_, b_, c_;
  std::vector<Choice> choices_;
  std::size_t first_ = 0, best_ = 0;
  int operations_ = 1;
  Turns turns_;
};

void advise_on_choice(Adviser& adviser) {
  std::vector<Comparison> comparisons;
  for (const std::string& shape : adviser.rows.values({}, "default_ns", "shape")) {
    for (const std::string& type : adviser.rows.values({{"shape", shape}}, "default_ns", "type")) {
      const Params which = {{"shape", shape}, {"type", type}};
      if (const auto comparison =
              compare(adviser.rows.find(which, "default_ns"), adviser.rows.find(which, "best_ns")))
        comparisons.push_back(*comparison);
    }
  }
  adviser.judge(comparisons,
                {.of = "of a product by the library's default choice",
                 .than = "of one by the best of what cuBLASLt offers",
                 .if_more = "Choose the algorithm yourself where a product counts "
                            "(cublasLtMatmulAlgoGetHeuristic, and time what it offers)",
                 .if_less = "Leave the choice to the library",
                 .if_same = "The library's own choice costs nothing",
                 .less = Severity::note});
}

/// Each way's time beside that of the best candidate, shape by shape.
Figure choice_figure(const std::string& type) {
  const std::vector<std::pair<std::string, std::string>> params = {{"type", type}};
  return {.caption = "Times the best candidate's time, " + type,
          .lines = {{"default", params, "regret"},
                    {"first candidate", params, "first_regret"},
                    {"tuned", params, "tuned_regret"}},
          .each = "shape"};
}

Metric way(std::string_view key, std::string meaning, std::string_view noun) {
  return {key, "ns", Direction::lower_is_better, "events", std::move(meaning), "launching", noun};
}

const Registration matmul_choice =
    benchmark("matmul/choice")
        .asks("What does the library's own choice of an algorithm cost?")
        .axis("shape",
              "m x n x k, and how A and B lie (docs/shapes.md)",
              on_gpus(by_profile({"1024x1024x1024-nt"},
                                 {"16x4096x4096-nt", "2048x2048x2048-nt"},
                                 {"16x4096x4096-nt", "128x6144x4096-nt", "2048x2048x2048-nt"})))
        .axis("type",
              product_type_meaning,
              by_profile({"fp32"},
                         {"fp32", "bf16", "fp8_e4m3"},
                         {"fp32", "fp16", "bf16", "int8", "fp8_e4m3", "fp8_e4m3_fast"}))
        .brings(way("default_ns",
                    "A product by the library that its users take, and its own choice.",
                    "the time"))
        .brings(way("first_ns",
                    "A product by the first candidate that cuBLASLt offers.",
                    "the first candidate's time"))
        .brings(way(
            "tuned_ns",
            "A product by cuBLAS's own tuning (CUBLAS_GEMM_AUTOTUNE); missing where it has none.",
            "the tuned time"))
        .brings(derived_ratio("first_regret",
                              "first_ns divided by best_ns, sample by sample.",
                              "",
                              "the first candidate's regret"))
        .brings(derived_ratio("tuned_regret",
                              "tuned_ns divided by best_ns, sample by sample.",
                              "",
                              "the regret of tuning"))
        .metrics({"default_ns",
                  "first_ns",
                  "best_ns",
                  "tuned_ns",
                  "regret",
                  "first_regret",
                  "tuned_regret"})
        .advises(advise_on_choice)
        .draws({choice_figure("fp32"), choice_figure("bf16"), choice_figure("fp8_e4m3")})
        .samples({3, 5}, {5, 5})
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const MatmulShape shape = matmul_shape(name.at("shape"));
          // Up to 32 candidates, each verified whole and timed seven times.
          return 32 * (3e-9 * static_cast<double>(shape.c_count()) + 0.02) +
                 5 * product_seconds(facts, shape, sampling);
        })
        .untraced()
        .makes<MatmulChoice>();

}  // namespace
}  // namespace launchgap
