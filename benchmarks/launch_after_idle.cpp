// Whether a launch takes longer when the device, and the thread that launches, had nothing to do
// for a while.
#include <chrono>
#include <thread>

#include "benchmarks/launching.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

class LaunchAfterIdle : public Case {
 public:
  explicit LaunchAfterIdle(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::null_kernel)),
        idle_(context.name.number("idle_ms")),
        method_(launch_method(*kernel_, context.device.facts())) {
    verify_launches(context.device, *stream_);
    for (int i = 0; i < 200; ++i) launch_and_wait();
  }

  /// Busy before it is idle, so that every sample begins alike.
  void sample(Block& block) override {
    if (idle_.count() > 0) {
      for (int i = 0; i < 20; ++i) launch_and_wait();
      std::this_thread::sleep_for(idle_);
    }
    sample_idle(
        block,
        [this] {
          stream_->launch(*kernel_, {1, 1}, nullptr);
        },
        [this] { stream_->wait(); });
  }

  /// Where there is no pause, the one that writing the block before took would be the first.
  int warm_up_samples() const override { return idle_.count() > 0 ? 0 : 20; }
  std::string method() const override { return method_; }

 private:
  void launch_and_wait() {
    stream_->launch(*kernel_, {1, 1}, nullptr);
    stream_->wait();
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::chrono::milliseconds idle_;
  std::string method_;
};

/// The long ones have one sample per process: what counts is how many processes there are.
Sampling samples(Profile profile, const CaseName& name) {
  const bool quick = profile == Profile::quick;
  switch (name.number("idle_ms")) {
    case 0:
      return {quick ? 3 : 6, 50};
    case 1:
      return {quick ? 3 : 6, 10};
    case 10:
      return {quick ? 1 : 2, 5};
    case 100:
      return {1, quick ? 1 : 4};
    default:
      return {1, 1};
  }
}

void advise_on_after_idle(Adviser& adviser) {
  const auto comparisons = adviser.rows.compare_axis({}, "roundtrip_ns", "idle_ms", "0");
  const Comparison* const from = from_which_on(comparisons, RatioVerdict::more);
  if (!from) {
    return adviser.judge(comparisons.empty() ? comparisons : std::vector{comparisons.back()},
                         {.of = "after the longest idle time",
                          .than = "after none",
                          .if_more = "",  // said below
                          .if_less = "Launches are faster after an idle time",
                          .if_same = "An idle time costs the launch after it nothing",
                          .less = Severity::note});
  }
  const Comparison& longest = comparisons.back();
  // Only of a pause that was measured it is known to do no harm.
  const std::string harmless =
      from == &comparisons.front() ? "" : axis_value(*std::prev(from)->row, "idle_ms");
  // Whether a program idles between its launches is not known here.
  adviser.say(
      Severity::note,
      fmt::format(
          "A launch after {} ms or more of idleness is slower: round trips take {} times as long "
          "after {} ms{}. Where that counts, keep the device busy{}.",
          axis_value(*from->row, "idle_ms"),
          sure_times_text(from->ratio),
          axis_value(*from->row, "idle_ms"),
          &longest == from ? ""
                           : fmt::format(", {} times after {} ms",
                                         sure_times_text(longest.ratio),
                                         axis_value(*longest.row, "idle_ms")),
          harmless.empty()
              ? ""
              : fmt::format(": launch an empty kernel at least every {} ms", harmless)),
      &longest == from ? std::vector{*from} : std::vector{*from, longest});
}

const Registration launch_after_idle =
    benchmark("launch/after_idle")
        .asks("Is a launch slower after an idle time?")
        .axis("idle_ms",
              "milliseconds without work before the launch",
              by_profile({"0", "1", "10", "100"}, {"0", "1", "10", "100", "1000", "2000"}))
        .metrics({"api_ns", "roundtrip_ns"})
        .samples(samples)
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const double idle = 1e-3 * static_cast<double>(name.number("idle_ms"));
          return 0.01 + (idle + 3e-4) * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .untraced()
        .advises(advise_on_after_idle)
        .draws({{"Over the idle time before",
                 {{"round trip", {}, "roundtrip_ns"}, {"in the call", {}, "api_ns"}},
                 "idle_ms",
                 "ms"}})
        .makes<LaunchAfterIdle>();

}  // namespace
}  // namespace launchgap
