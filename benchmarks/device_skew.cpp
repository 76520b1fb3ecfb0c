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

class Skew : public Case {
 public:
  explicit Skew(const CaseContext& context) : members_(make_members(context)) {
    skew_.valid = members_->valid();
    skew_.case_name = context.name.text();
    for (std::size_t i = 0; i < members_->size(); ++i)
      skew_.members.push_back({members_->name(i), {}, {}, members_->alone_ns(i)});
    for (int i = 0; i < kWarmUpSteps; ++i) members_->step();
    members_->spoil();
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const std::vector<Step>& steps = members_->step();
    std::int64_t last = begin;
    double longest = 0, shortest = std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      const auto host = static_cast<double>(step.returned - step.begin);
      skew_.members[i].host_ns.push_back(step.returned - step.begin);
      skew_.members[i].work_ns.push_back(static_cast<std::int64_t>(step.work));
      if (step.waited_first)
        unseen_.push_back(
            std::max(0.0, static_cast<double>(step.seen - step.begin) - host - step.work));
      last = std::max(last, step.seen);
      longest = std::max(longest, host + step.work);
      shortest = std::min(shortest, host + step.work);
      sum += host + step.work;
    }
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
    // Between the call's return and the start of the work, and between its end and the sight of it.
    // The median of the steps that were seen to end, as lateness is one of medians.
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
        .needs_all_gpus()
        .brings({"skew_step_ns",
                 "ns",
                 Direction::lower_is_better,
                 "host_clock",
                 "From the start of a step until the last device is ready.",
                 "",
                 "the step of all devices"})
        .brings({"skew_ns",
                 "ns",
                 Direction::lower_is_better,
                 "host_clock",
                 "By how much the last device of a step takes longer than the first: the host's "
                 "part and the work, by events.",
                 "the time between a call and the start of its work",
                 "the skew of the devices"})
        .brings({"waiting_share",
                 "1",
                 Direction::lower_is_better,
                 "derived",
                 "What the devices wait for the last one on average, as a share of its time: 1 - "
                 "mean / max.",
                 "",
                 "the share that devices wait",
                 "skew_ns"})
        .metrics({"skew_step_ns", "skew_ns", "waiting_share"})
        .samples([](Profile profile, const CaseName&) {
          return Sampling{profile == Profile::quick ? 2 : 4, 50};
        })
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 1.0 + 5e-3 * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .untraced()
        .makes<Skew>();

}  // namespace
}  // namespace launchgap
