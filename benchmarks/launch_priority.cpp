// What a stream's priority is worth to a small kernel while other work fills the device.
#include <fmt/format.h>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

class PriorityLaunch : public Case {
 public:
  explicit PriorityLaunch(const CaseContext& context) : device_(context.device) {
    const Device::Priorities range = device_.stream_priorities();
    if (range.lowest == range.highest)
      throw Unsupported("the device has one priority for all streams");
    StreamOptions lowest;
    lowest.priority = range.lowest;
    background_ = device_.create_stream(lowest);
    StreamOptions own;
    own.priority = context.name.at("priority") == "higher" ? range.highest : range.lowest;
    stream_ = device_.create_stream(own);
    filling_ = device_.load(kernels::spin_kernel);
    kernel_ = device_.load(kernels::null_kernel);
    blocks_ = static_cast<unsigned>(kWaves * device_.resident_blocks(*filling_, kThreads));
    verify_launches(device_, *stream_);
    verify_launches(device_, *background_);
    fill();
    stream_->launch(*kernel_, {1, 1}, nullptr);
    device_.check();
  }

  /// The background lasts about a millisecond, in blocks of 20 us: whoever waits for a block to end
  /// waits that long at most, and whoever waits for all of them almost fifty times as long. A
  /// launch right behind that of the background could reach the device before it is full.
  void sample(Block& block) override {
    fill();
    for (const std::int64_t full = now_ns() + kFillingNs; now_ns() < full;) {
    }
    const std::int64_t called = now_ns();
    stream_->launch(*kernel_, {1, 1}, nullptr);
    stream_->wait();
    const std::int64_t waited = now_ns();
    background_->wait();
    block.keep(called, waited - called);
  }

  int warm_up_samples() const override { return 1; }
  std::string method() const override {
    return fmt::format("{}, beside {} blocks of {} us",
                       launch_method(*kernel_, device_.facts()),
                       blocks_,
                       kBlockNs / 1000);
  }

 private:
  static constexpr int kThreads = 256;
  static constexpr int kWaves = 50;
  static constexpr unsigned long long kBlockNs = 20'000;
  static constexpr std::int64_t kFillingNs = 100'000;

  void fill() {
    unsigned long long nanoseconds = kBlockNs;
    unsigned* counter = nullptr;
    void* arguments[] = {&nanoseconds, &counter};
    background_->launch(*filling_, {blocks_, kThreads}, arguments);
  }

  Device& device_;
  std::unique_ptr<Stream> background_, stream_;
  std::unique_ptr<Kernel> filling_, kernel_;
  unsigned blocks_ = 0;
};

void advise_on_priority(Adviser& adviser) {
  const auto row = [&](const char* priority) {
    return adviser.rows.find({{"priority", priority}}, "roundtrip_ns");
  };
  const auto comparison = compare(row("higher"), row("same"));
  if (!comparison) return;
  if (comparison->ratio.verdict == RatioVerdict::less) {
    // By how many times depends on how much work there is, which is launchgap's own.
    adviser.say(Severity::act,
                fmt::format("Put urgent work into a stream of higher priority: beside other work a "
                            "round trip takes {}, and with the same priority it waits for that "
                            "work, {} here.",
                            level_text(*comparison->row),
                            level_text(*comparison->reference)),
                {*comparison});
    return;
  }
  adviser.judge({*comparison},
                {.of = "with a higher priority beside other work",
                 .than = "with the same priority",
                 .if_more = "A higher priority makes it no faster",
                 .if_less = "Put urgent work into a stream of higher priority",
                 .if_same = "A higher priority gains nothing",
                 .more = Severity::note});
}

const Registration launch_priority =
    benchmark("launch/priority")
        .asks("What does a higher priority save on a busy device?")
        .axis("priority",
              "of the kernel: that of the work which fills the device, or the highest",
              {"same", "higher"})
        .only([](Profile, const DeviceFacts& facts, const CaseName& name) {
          return can(facts, Capability::use_priorities) || name.at("priority") == "higher";
        })
        .metrics({"roundtrip_ns"})
        .samples({3, 10}, {8, 10})
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 0.01 + 1.3e-3 * (sampling.blocks * (sampling.samples + 1) + 1);
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_priority)
        .draws({{"Round trip of an empty kernel",
                 {{"same", {{"priority", "same"}}, "roundtrip_ns"},
                  {"higher", {{"priority", "higher"}}, "roundtrip_ns"}}}})
        .makes<PriorityLaunch>();

}  // namespace
}  // namespace launchgap
