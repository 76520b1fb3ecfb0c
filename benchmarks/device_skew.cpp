// Whether devices that do the same step at once are ready at the same time: who keeps the others
// waiting, by how much, and whether the device or the host is the cause.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "benchmarks/skew_members.h"
#include "harness/device/backend.h"
#include "harness/stats/stats.h"

namespace launchgap {
namespace {

double host_ns(const Step& step) {
  return static_cast<double>(step.returned - step.begin);
}

/// When the sum of a step is there, in ns after `begin`: it is on all at about the same time, and
/// on none before its call, its work and its wait for the others are over. No clock of the host
/// sees that: it looks when it gets to it.
double end_of_sum(const std::vector<Step>& steps, std::int64_t begin) {
  double end = 0;
  for (const Step& step : steps)
    end = std::max(
        end,
        static_cast<double>(step.begin - begin) + host_ns(step) + step.work + step.sum.value_or(0));
  return end;
}

class Skew : public Case {
 public:
  explicit Skew(const CaseContext& context) : members_(make_members(context)) {
    skew_.valid = members_->valid();
    skew_.case_name = context.name.text();
    for (std::size_t i = 0; i < members_->size(); ++i)
      skew_.members.push_back({members_->name(i), {}, {}, {}, members_->alone_ns(i)});
    for (int i = 0; i < kWarmUpSteps; ++i) members_->step();
    members_->spoil();
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const std::vector<Step>& steps = members_->step();
    std::int64_t last = begin;
    double longest = 0, shortest = std::numeric_limits<double>::infinity(), sum = 0;
    const double together = end_of_sum(steps, begin);
    double shortest_sum = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      double host = host_ns(step);
      if (step.sum) {
        // What is before the sum's end, and neither the sum nor work.
        host = together - static_cast<double>(step.begin - begin) - step.work - *step.sum;
        shortest_sum = std::min(shortest_sum, *step.sum);
        skew_.members[i].sum_ns.push_back(static_cast<std::int64_t>(*step.sum));
      } else if (step.waited_first) {
        unseen_.push_back(
            std::max(0.0, static_cast<double>(step.seen - step.begin) - host - step.work));
      }
      skew_.members[i].host_ns.push_back(static_cast<std::int64_t>(host));
      skew_.members[i].work_ns.push_back(static_cast<std::int64_t>(step.work));
      last = std::max(last, step.seen);
      longest = std::max(longest, host + step.work);
      shortest = std::min(shortest, host + step.work);
      sum += host + step.work;
    }
    // The last one's: so long the sum takes by itself, and ends at about the same time on all.
    if (steps.front().sum) unseen_.push_back(shortest_sum);
    block.keep(begin,
               static_cast<double>(last - begin),
               longest - shortest,
               1 - sum / static_cast<double>(steps.size()) / longest);
  }

  void verify_timed_work() override { members_->verify(); }
  std::string method() const override { return members_->method(); }

  std::optional<DeviceSkew> skew() const override {
    if (unseen_.empty()) return std::nullopt;
    DeviceSkew skew = skew_;
    // Without a sum between the call's return and the start of the work, and between its end and
    // the sight of it. The median of the steps, as lateness is one of medians.
    skew.uncertainty_ns = stats::median(unseen_).value_or(0);
    return skew;
  }

 private:
  static constexpr int kWarmUpSteps = 10;

  std::unique_ptr<Members> members_;
  DeviceSkew skew_;
  std::vector<double> unseen_;  // of steps whose end was seen at once
};

const Registration device_skew =
    benchmark("device/skew")
        .asks("When all devices do the same step at once, who keeps the others waiting?")
        .axis("work",
              "`compute`: multiplications and additions in registers; `copy`: 256 MiB within the "
              "device's memory",
              [](Profile, const DeviceFacts& facts) {
                return is_gpu(facts) ? std::vector<std::string>{"compute", "copy"}
                                     : std::vector<std::string>{"compute"};
              })
        .axis("threads",
              "`one`: a thread launches on all in turn, in another order each step; `each`: every "
              "device has a thread, and every thread a CPU",
              [](Profile, const DeviceFacts& facts) {
                return is_gpu(facts) ? std::vector<std::string>{"one", "each"}
                                     : std::vector<std::string>{"each"};
              })
        .axis("collective",
              "`nccl`: behind its work every device gives 4 bytes to NCCL's sum of all, and has it "
              "when the last one has come",
              [](Profile, const DeviceFacts& facts) {
                return is_gpu(facts) ? std::vector<std::string>{"none", "nccl"}
                                     : std::vector<std::string>{"none"};
              })
        .needs_all_gpus()
        .brings(host_time("skew_step_ns",
                          "From the start of a step until the last device is ready.",
                          "",
                          "the step of all devices"))
        .brings(host_time(
            "skew_ns",
            "By how much the last device of a step takes longer than the first: the host's part "
            "and the work, by events. With a sum: how much less the last one waits for it.",
            "without a sum, the time between a call and the start of its work",
            "the skew of the devices"))
        .brings({"waiting_share",
                 "1",
                 Direction::lower_is_better,
                 "derived",
                 "What the devices wait for the last one on average, as a share of "
                 "its time: 1 - mean / max.",
                 "",
                 "the share that devices wait",
                 "skew_ns"})
        .metrics({"skew_step_ns", "skew_ns", "waiting_share"})
        .samples({2, 50}, {4, 50})
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const double start_s = name.at("collective") == "none" ? 1 : 4;
          return start_s + 5e-3 * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .untraced()
        .makes<Skew>();

}  // namespace
}  // namespace launchgap
