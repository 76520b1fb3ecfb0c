// What a kernel launch costs, when the kernel does nothing.
#include <fmt/format.h>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/measure/benchmark.h"
#include "kernels/increment.h"
#include "kernels/null.h"

namespace launchgap {
namespace {

/// Launches in flight at once; half of what the launch queue is known to hold, so that none waits
/// for room.
constexpr int kBurst = 256;
constexpr int kVerifiedLaunches = 100;
constexpr int kWarmUpLaunches = 1000;

/// Every launch must run once and in order, or its time means nothing.
void verify_launches(Device& device, Stream& stream) {
  const std::unique_ptr<Kernel> increment = device.load(kernels::increment_kernel);
  const std::unique_ptr<Buffer> counter = device.allocate(sizeof(unsigned));
  void* address = counter->address();
  void* arguments[] = {&address};
  stream.fill_bytes(address, 0, sizeof(unsigned));
  for (int i = 0; i < kVerifiedLaunches; ++i) stream.launch(*increment, {1, 1}, arguments);
  stream.wait();
  unsigned count = 0;
  device.read(*counter, 0, &count, sizeof count);
  if (count != kVerifiedLaunches) {
    throw WrongResult(
        fmt::format("{} launches of a kernel that counts gave {}", kVerifiedLaunches, count));
  }
}

class NullLaunch : public Case {
 public:
  explicit NullLaunch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::null_kernel)),
        burst_(context.name.at("mode") == "burst"),
        method_(method_of(*kernel_, context.name)) {
    verify_launches(context.device, *stream_);
    for (int i = 0; i < kWarmUpLaunches; ++i) {
      stream_->launch(*kernel_, {1, 1}, nullptr);
      stream_->wait();
    }
  }

  void sample(Block& block) override {
    if (burst_) {
      const std::int64_t begin = now_ns();
      for (int i = 0; i < kBurst; ++i) stream_->launch(*kernel_, {1, 1}, nullptr);
      stream_->wait();
      const std::int64_t end = now_ns();
      block.keep(begin, static_cast<double>(end - begin) / kBurst);
    } else {
      const std::int64_t called = now_ns();
      stream_->launch(*kernel_, {1, 1}, nullptr);
      const std::int64_t returned = now_ns();
      stream_->wait();
      const std::int64_t waited = now_ns();
      block.keep(called, returned - called, waited - called);
    }
  }

  int warm_up_samples() const override { return burst_ ? 2 : 50; }
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
        .metrics([](const CaseName& name) {
          return name.at("mode") == "burst"
                     ? std::vector<std::string_view>{"per_launch_ns"}
                     : std::vector<std::string_view>{"api_ns", "roundtrip_ns"};
        })
        .samples([](Profile profile, const CaseName& name) {
          const bool quick = profile == Profile::quick;
          return name.at("mode") == "burst" ? Sampling{quick ? 5 : 10, 200}
                                            : Sampling{quick ? 5 : 10, 2000};
        })
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const double launches = name.at("mode") == "burst" ? kBurst : 3;
          return 0.05 + 4e-6 * launches * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .traced_as([](const CaseName& name) {
          return name.at("mode") == "burst" ? TracedAs::burst : TracedAs::launch;
        })
        .shows_observer_effect()
        .makes<NullLaunch>();

}  // namespace
}  // namespace launchgap
