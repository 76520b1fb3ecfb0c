// Whether a launch takes longer when the device, and the thread that launches, had nothing to do
// for a while.
#include <chrono>
#include <thread>

#include "benchmarks/launching.h"
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

std::vector<std::string> idle_times(Profile profile, const DeviceFacts&) {
  if (profile == Profile::quick) return {"0", "1", "10", "100"};
  return {"0", "1", "10", "100", "1000", "2000"};
}

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

const Registration launch_after_idle =
    benchmark("launch/after_idle")
        .asks("After how long an idle time does a launch take longer?")
        .axis("idle_ms", idle_times)
        .metrics({"api_ns", "roundtrip_ns"})
        .samples(samples)
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const double idle = 1e-3 * static_cast<double>(name.number("idle_ms"));
          return 0.01 + (idle + 3e-4) * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .untraced()
        .makes<LaunchAfterIdle>();

}  // namespace
}  // namespace launchgap
