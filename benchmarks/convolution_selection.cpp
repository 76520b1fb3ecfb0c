// Which algorithm a library selects for a convolution, how often it selects another one, and what
// its selections cost against the best of what it offers, by our own medians.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/choosing.h"
#include "benchmarks/operands.h"
#include "benchmarks/products.h"
#include "harness/core/errors.h"
#include "harness/device/shape_text.h"

namespace launchgap {
namespace {

using kernels::Distribution;

constexpr int kSelections = 20;  // of each kind and process

ConvolutionShape selected_shape(const CaseName& name) {
  ConvolutionShape shape = convolution_shape(name.at("shape"));
  shape.direction = named(kConvolutionDirections, name.at("direction"));
  shape.type = product_type(name.at("type"));
  return shape;
}

class ConvolutionSelection : public Case {
 public:
  explicit ConvolutionSelection(const CaseContext& context)
      : device_(context.device),
        shape_(selected_shape(context.name)),
        seed_(context.seed),
        case_name_(context.name.text()),
        stream_(device_.create_stream()),
        timer_(device_, *stream_),
        convolution_(device_.convolution(*stream_, shape_)) {
    operand_sets(
        device_, "warm", shape_.first_bytes() + shape_.second_bytes() + shape_.result_bytes());
    first_ = device_.allocate(shape_.first_bytes());
    second_ = device_.allocate(shape_.second_bytes());
    fill_operands(Distribution::uniform, 0, 1);
    convolution_->add_tensors(*first_, *second_);
    enqueue();
    stream_->wait();
    operations_ = timer_.operations_for_one_ms(warm_up_seconds(device_), [&](int) { enqueue(); });
    const std::map<std::size_t, int> got = select(Selection::get);
    const std::map<std::size_t, int> found = select(Selection::find);
    candidates_ = convolution_->candidates();
    verify_all();
    fill_operands(Distribution::uniform, 0, 1);
    convolution_->update_tensors(0);
    // By medians of samples that no sample of the case is among.
    best_ = choose_best(choices_, [this](std::size_t i) { return time_candidate(i); });
    selected_ = most_frequent(Selection::get, got);
    if (!found.empty()) found_ = most_frequent(Selection::find, found);
    note(Selection::get, got);
    note(Selection::find, found);
  }

  /// All ways, one right after the other, each time in another order.
  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    double ns[kWays] = {};
    turns_.take(kWays, [&](int way) { ns[way] = time(static_cast<Way>(way)); });
    block.keep(begin,
               ns[kSelected],
               ns[kFound],
               ns[kBest],
               ns[kSelected] / ns[kBest],
               ns[kFound] / ns[kBest]);
  }
  int operations_per_sample() const override { return operations_; }

  void verify_timed_work() override {
    verify_timed_convolution(
        result(), shape_, seeds(Distribution::uniform, 0, 1), convolution_->rounds_integers());
  }

  std::vector<Choice> choices() const override { return choices_; }

  std::string method() const override {
    convolution_->choose(selected_);
    return fmt::format(
        "selected: {}; best: {}; of {} candidates within {} MiB of workspace; {} "
        "per sample{}",
        convolution_->method(),
        candidates_[best_].algorithm,
        candidates_.size(),
        kSelectionWorkspaceBytes >> 20,
        operations_,
        remark_on_gate(device_));
  }

 private:
  enum Way { kSelected, kFound, kBest, kWays };

  InputSeeds seeds(Distribution distribution, std::size_t set, std::uint64_t step) const {
    return {derive_seed(seed_, fmt::format("first{}", set)),
            derive_seed(seed_, fmt::format("second{}", set)),
            distribution,
            step};
  }

  void fill_operands(Distribution distribution, std::size_t set, std::uint64_t step) {
    const InputSeeds from = seeds(distribution, set, step);
    fill(device_, *stream_, *first_, from.first, shape_.type.a, distribution);
    fill(device_, *stream_, *second_, from.second, shape_.type.b, distribution, step);
    stream_->wait();
  }

  void enqueue() { convolution_->enqueue(0); }

  const void* result() {
    result_.resize(shape_.result_bytes());
    convolution_->read_output(0, result_.data());
    return result_.data();
  }

  /// How often each candidate was first. Empty where the library has no such selection.
  std::map<std::size_t, int> select(Selection how) {
    std::map<std::size_t, int> times;
    try {
      for (int i = 0; i < kSelections; ++i) ++times[convolution_->select(how)];
    } catch (const Unsupported&) {
      if (how == Selection::get) throw;
    }
    return times;
  }

  /// Throws WrongResult, or what the call throws. Each candidate has operands of its own, so that
  /// none passes with another's result.
  void verify(std::size_t candidate) {
    convolution_->choose(candidate);
    const bool rounds = convolution_->rounds_integers();
    const std::uint64_t step = rounds ? 1 : exact_step(shape_);
    fill_operands(Distribution::small_integer, candidate + 1, step);
    convolution_->update_tensors(0);
    enqueue();
    stream_->wait();
    verify_convolution(
        result(), shape_, seeds(Distribution::small_integer, candidate + 1, step), rounds);
  }

  Choice choice_of(std::size_t candidate) const {
    Choice choice;
    choice.case_name = case_name_;
    choice.by = "candidate";
    choice.candidate = static_cast<int>(candidate);
    choice.algorithm = candidates_[candidate].algorithm;
    choice.workspace_bytes = candidates_[candidate].workspace_bytes;
    return choice;
  }

  /// A candidate that is wrong or fails is named and never chosen.
  void verify_all() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      Choice choice = choice_of(i);
      judge(choice, [&] { verify(i); });
      choices_.push_back(std::move(choice));
    }
  }

  /// Throws where what the library selects is wrong: then every user of it computes wrong results.
  std::size_t most_frequent(Selection how, const std::map<std::size_t, int>& times) const {
    using Times = std::pair<const std::size_t, int>;
    const std::size_t candidate = std::ranges::max_element(times, {}, &Times::second)->first;
    if (!is_sound(choices_[candidate]))
      throw WrongResult(fmt::format("{} selects algorithm {}: {}",
                                    convolution_->selection_call(how),
                                    candidates_[candidate].algorithm,
                                    choices_[candidate].reason));
    return candidate;
  }

  void note(Selection how, const std::map<std::size_t, int>& times) {
    for (const auto& [candidate, count] : times) {
      Choice choice = choice_of(candidate);
      choice.by = convolution_->selection_call(how);
      choice.median_ns = choices_[candidate].median_ns;
      choice.times = count;
      choice.outcome = "selected";
      choices_.push_back(std::move(choice));
    }
  }

  double time_candidate(std::size_t candidate) {
    convolution_->choose(candidate);
    return timer_.time(operations_, [this](int) { enqueue(); });
  }

  double time(Way way) {
    if (way == kFound && !found_) return Block::kMissing;
    return time_candidate(way == kSelected ? selected_ : way == kFound ? *found_ : best_);
  }

  Device& device_;
  ConvolutionShape shape_;
  std::uint64_t seed_;
  std::string case_name_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  std::unique_ptr<Buffer> first_, second_;
  std::unique_ptr<Convolution> convolution_;
  std::vector<ConvolutionCandidate> candidates_;
  std::vector<Choice> choices_;  // of each candidate, then of each that a selection had first
  std::vector<unsigned char> result_;
  std::size_t selected_ = 0, best_ = 0;
  std::optional<std::size_t> found_;
  int operations_ = 1;
  Turns turns_;
};

const Registration convolution_selection =
    benchmark("convolution/selection")
        .asks("Which algorithm does the library select, and what does that cost?")
        .axis("shape",
              convolution_shape_meaning,
              [](Profile profile, const DeviceFacts& facts) -> std::vector<std::string> {
                if (!is_gpu(facts)) return {};
                if (profile == Profile::quick) return {"1x128x14x14-128x3x3-p1"};
                return {"32x64x56x56-64x3x3-p1", "32x256x14x14-256x3x3-p1", "32x2048x7x7-512x1x1"};
              })
        .axis("direction",
              convolution_direction_meaning,
              [](Profile profile, const DeviceFacts&) -> std::vector<std::string> {
                if (profile == Profile::quick) return {"forward"};
                return names_of(kConvolutionDirections);
              })
        .axis("type",
              product_type_meaning,
              [](Profile profile, const DeviceFacts&) -> std::vector<std::string> {
                if (profile == Profile::quick) return {"fp32"};
                return {"fp32", "fp16"};
              })
        .brings({"selected_ns",
                 "ns",
                 Direction::lower_is_better,
                 "events",
                 "A convolution by the algorithm that most of 20 selections have first which run "
                 "nothing (cudnnGet…).",
                 "launching",
                 "the selected algorithm's time"})
        .brings({"found_ns",
                 "ns",
                 Direction::lower_is_better,
                 "events",
                 "A convolution by the algorithm that most of 20 selections have first which run "
                 "and time what there is (cudnnFind…); missing where the library has none.",
                 "launching",
                 "the found algorithm's time"})
        .brings({"find_regret",
                 "1",
                 Direction::lower_is_better,
                 "derived",
                 "found_ns divided by best_ns, sample by sample.",
                 "",
                 "the regret of finding"})
        .metrics({"selected_ns", "found_ns", "best_ns", "regret", "find_regret"})
        .samples([](Profile profile, const CaseName&) {
          return Sampling{profile == Profile::quick ? 3 : 5, 5};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const ConvolutionShape shape = selected_shape(name);
          // Some ten candidates, each verified whole and timed; each of 20 finds runs all of them a
          // few times, and some are ten times slower than the best.
          return 20 * convolution_seconds(facts, shape, {2, 5}) +
                 3 * convolution_seconds(facts, shape, sampling);
        })
        .untraced()
        .makes<ConvolutionSelection>();

}  // namespace
}  // namespace launchgap
