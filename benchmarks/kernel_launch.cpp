// What a kernel launch costs, when the kernel does nothing.
#include "benchmarks/launching.h"
#include "kernels/null.h"

namespace launchgap {
namespace {

constexpr int kWarmUpLaunches = 1000;

class NullLaunch : public Case {
 public:
  explicit NullLaunch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::null_kernel)),
        burst_(is_burst(context.name)),
        method_(launch_method(*kernel_, context.device.facts())) {
    verify_launches(context.device, *stream_);
    for (int i = 0; i < kWarmUpLaunches; ++i) {
      stream_->launch(*kernel_, {1, 1}, nullptr);
      stream_->wait();
    }
  }

  void sample(Block& block) override {
    sample_by_mode(block, burst_, *stream_, [this] { stream_->launch(*kernel_, {1, 1}, nullptr); });
  }

  int warm_up_samples() const override { return warm_up_by_mode(burst_); }
  int operations_per_sample() const override { return burst_ ? kBurst : 1; }
  std::string method() const override { return method_; }

 private:
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  bool burst_;
  std::string method_;
};

const Registration null_launch =
    benchmark("launch/null")
        .asks("What does a launch cost when the kernel does nothing?")
        .axis("api", launching_api)
        .axis("mode", {"idle", "burst"})
        .metrics(metrics_by_mode)
        .samples([](Profile profile, const CaseName& name) {
          const bool quick = profile == Profile::quick;
          return is_burst(name) ? Sampling{quick ? 5 : 10, quick ? 60 : 100}
                                : Sampling{quick ? 5 : 10, 2000};
        })
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          return 0.05 + seconds_by_mode(name, sampling);
        })
        .one_device_at_a_time()
        .traced_as(traced_by_mode)
        .shows_observer_effect()
        .makes<NullLaunch>();

}  // namespace
}  // namespace launchgap
