// Whether it matters by which API a kernel is launched.
#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/device/null_launcher.h"

namespace launchgap {
namespace {

/// Through the CUDA runtime, which has a kernel of its own: it does nothing either.
class RuntimeLaunch : public Case {
 public:
  explicit RuntimeLaunch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        launcher_(context.device.runtime_launcher(
            context.name.at("api") == "chevron" ? RuntimeApi::chevron : RuntimeApi::launch_ex)),
        burst_(is_burst(context.name)) {
    verify_counting(context.device);
    for (int i = 0; i < 200; ++i) {
      launcher_->launch(*stream_);
      stream_->wait();
    }
  }

  void sample(Block& block) override {
    sample_by_mode(block, burst_, *stream_, [this] { launcher_->launch(*stream_); });
  }

  int warm_up_samples() const override { return warm_up_by_mode(burst_); }
  std::string method() const override { return launcher_->method(); }

 private:
  void verify_counting(Device& device) {
    verify_launches(device, *stream_, 100, [&](const Kernel&, void** arguments) {
      launcher_->count(*stream_, *static_cast<void**>(arguments[0]));
    });
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<NullLauncher> launcher_;
  bool burst_;
};

std::unique_ptr<Case> make(const CaseContext& context) {
  need(context.device.facts(), Can::launch_in_several_ways);
  if (context.name.at("api") == "driver")
    return std::make_unique<NullLaunch>(context.device, is_burst(context.name));
  return std::make_unique<RuntimeLaunch>(context);
}

const Registration launch_api =
    benchmark("launch/api")
        .asks("Does it matter by which API a kernel is launched?")
        .axis("api", {"driver", "runtime", "chevron"})
        .axis("mode", {"idle", "burst"})
        .metrics(metrics_by_mode)
        .samples([](Profile profile, const CaseName& name) {
          const bool quick = profile == Profile::quick;
          return is_burst(name) ? Sampling{quick ? 3 : 10, 20} : Sampling{quick ? 3 : 10, 500};
        })
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          return seconds_by_mode(name, sampling);
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .makes(make);

}  // namespace
}  // namespace launchgap
