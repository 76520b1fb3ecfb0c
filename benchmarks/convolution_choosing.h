// A convolution by whatever a library offers for it: what it selects, how often that differs, and
// which of its candidates is right and the fastest.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/choosing.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/device_timer.h"
#include "harness/measure/verify.h"

namespace launchgap {

class ConvolutionChoosing : public Case {
 public:
  /// Has the library select 20 times in each way that it has, verifies everything that it offers,
  /// and times what is right. Throws Unsupported where it cannot select from the shape, and
  /// WrongResult where what it selects is wrong: then every user of it computes wrong results.
  /// `interface` as Device::convolution() takes it.
  ConvolutionChoosing(const CaseContext& context,
                      const ConvolutionShape& shape,
                      std::string_view interface = {});

  int operations_per_sample() const override { return operations_; }
  void verify_timed_work() override;
  /// Of each candidate, then of each that a selection had first.
  std::vector<Choice> choices() const override { return choices_; }
  std::string method() const override;

 protected:
  using Place = std::optional<std::size_t>;  // of a candidate
  /// What most selections from the shape have first, what most of those have that run what there is
  /// (absent where the library has none), and the best by its median.
  Place selected() const { return selected_; }
  Place found() const { return found_; }
  Place best() const { return best_; }

  /// What the convolution of each of these takes, in ns, one right after the other, each time in
  /// another order; Block::kMissing of one that is absent.
  template <std::size_t kCount>
  std::array<double, kCount> times_of(const Place (&candidates)[kCount]) {
    std::array<double, kCount> ns;
    ns.fill(Block::kMissing);
    turns_.take(static_cast<int>(kCount), [&](int way) {
      const auto i = static_cast<std::size_t>(way);
      if (candidates[i]) ns[i] = time(*candidates[i]);
    });
    return ns;
  }

 private:
  double time(std::size_t candidate);
  InputSeeds seeds(kernels::Distribution distribution, std::size_t set, std::uint64_t step) const;
  void fill_operands(kernels::Distribution distribution, std::size_t set, std::uint64_t step);
  void enqueue();
  const void* result();
  std::map<std::size_t, int> select(Selection how);
  void verify(std::size_t candidate);
  Choice choice_of(std::size_t candidate) const;
  void verify_all();
  std::size_t most_frequent(Selection how, const std::map<std::size_t, int>& times) const;
  void note(Selection how, const std::map<std::size_t, int>& times);

  Device& device_;
  ConvolutionShape shape_;
  std::uint64_t seed_;
  std::string case_name_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  std::unique_ptr<Buffer> first_, second_;
  std::unique_ptr<Convolution> convolution_;
  std::vector<ConvolutionCandidate> candidates_;
  std::vector<Choice> choices_;
  std::vector<unsigned char> result_;
  std::size_t selected_ = 0, best_ = 0;
  Place found_;
  int operations_ = 1;
  Turns turns_;
};

}  // namespace launchgap
