#include "benchmarks/convolution_choosing.h"

#include <algorithm>

#include <fmt/format.h>

#include "benchmarks/operands.h"
#include "harness/core/errors.h"

namespace launchgap {
namespace {

constexpr int kSelections = 20;  // of each kind and process

}  // namespace

using kernels::Distribution;

ConvolutionChoosing::ConvolutionChoosing(const CaseContext& context,
                                         const ConvolutionShape& shape,
                                         std::string_view interface)
    : device_(context.device),
      shape_(shape),
      seed_(context.seed),
      case_name_(context.name.text()),
      stream_(device_.create_stream()),
      timer_(device_, *stream_),
      convolution_(device_.convolution(*stream_, shape_, interface)) {
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
  best_ = choose_best(choices_, [this](std::size_t i) { return time(i); });
  selected_ = most_frequent(Selection::get, got);
  if (!found.empty()) found_ = most_frequent(Selection::find, found);
  note(Selection::get, got);
  note(Selection::find, found);
}

double ConvolutionChoosing::time(std::size_t candidate) {
  convolution_->choose(candidate);
  return timer_.time(operations_, [this](int) { enqueue(); });
}

void ConvolutionChoosing::verify_timed_work() {
  verify_timed_convolution(
      result(), shape_, seeds(Distribution::uniform, 0, 1), convolution_->rounds_integers());
}

std::string ConvolutionChoosing::method() const {
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

InputSeeds ConvolutionChoosing::seeds(Distribution distribution,
                                      std::size_t set,
                                      std::uint64_t step) const {
  return {derive_seed(seed_, fmt::format("first{}", set)),
          derive_seed(seed_, fmt::format("second{}", set)),
          distribution,
          step};
}

void ConvolutionChoosing::fill_operands(Distribution distribution,
                                        std::size_t set,
                                        std::uint64_t step) {
  const InputSeeds from = seeds(distribution, set, step);
  fill(device_, *stream_, *first_, from.first, shape_.type.a, distribution);
  fill(device_, *stream_, *second_, from.second, shape_.type.b, distribution, step);
  stream_->wait();
}

void ConvolutionChoosing::enqueue() {
  convolution_->enqueue(0);
}

const void* ConvolutionChoosing::result() {
  result_.resize(shape_.result_bytes());
  convolution_->read_output(0, result_.data());
  return result_.data();
}

/// How often each candidate was first. Empty where the library has no such selection.
std::map<std::size_t, int> ConvolutionChoosing::select(Selection how) {
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
void ConvolutionChoosing::verify(std::size_t candidate) {
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

Choice ConvolutionChoosing::choice_of(std::size_t candidate) const {
  const ConvolutionCandidate& its = candidates_[candidate];
  Choice choice;
  choice.case_name = case_name_;
  choice.by = "candidate";
  choice.candidate = static_cast<int>(candidate);
  choice.algorithm = its.algorithm;
  choice.engine = its.engine;
  choice.notes = its.notes;
  choice.workspace_bytes = its.workspace_bytes;
  return choice;
}

/// A candidate that is wrong or fails is named and never chosen.
void ConvolutionChoosing::verify_all() {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    Choice choice = choice_of(i);
    judge(choice, [&] { verify(i); });
    choices_.push_back(std::move(choice));
  }
}

std::size_t ConvolutionChoosing::most_frequent(Selection how,
                                               const std::map<std::size_t, int>& times) const {
  using Times = std::pair<const std::size_t, int>;
  const std::size_t candidate = std::ranges::max_element(times, {}, &Times::second)->first;
  if (!is_sound(choices_[candidate]))
    throw WrongResult("{} selects algorithm {}: {}",
                      convolution_->selection_call(how),
                      candidates_[candidate].algorithm,
                      choices_[candidate].reason);
  return candidate;
}

void ConvolutionChoosing::note(Selection how, const std::map<std::size_t, int>& times) {
  for (const auto& [candidate, count] : times) {
    Choice choice = choice_of(candidate);
    choice.by = convolution_->selection_call(how);
    choice.median_ns = choices_[candidate].median_ns;
    choice.times = count;
    choice.outcome = "selected";
    choices_.push_back(std::move(choice));
  }
}

}  // namespace launchgap
