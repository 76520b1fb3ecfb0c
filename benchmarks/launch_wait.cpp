// What the way of waiting costs and frees: spinning, yielding or sleeping, for a stream or an
// event.
#include <ctime>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

std::int64_t thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

class WaitLaunch : public Case {
 public:
  explicit WaitLaunch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::null_kernel)),
        method_(fmt::format("{}, waiting for the {}: {}",
                            launch_method(*kernel_, context.device.facts()),
                            context.name.at("by"),
                            context.name.at("wait"))) {
    need(context.device.facts(), Can::choose_wait);
    if (context.name.at("by") == "event") event_ = context.device.create_event(EventUse::order);
    verify_launches(context.device, *stream_);
  }

  void sample(Block& block) override {
    const std::int64_t cpu_begin = thread_cpu_ns();
    const std::int64_t called = now_ns();
    stream_->launch(*kernel_, {1, 1}, nullptr);
    if (event_) {
      stream_->record(*event_);
      event_->wait();
    } else {
      stream_->wait();
    }
    const std::int64_t waited = now_ns();
    const std::int64_t cpu_end = thread_cpu_ns();
    block.keep(called, waited - called, cpu_end - cpu_begin);
  }

  int warm_up_samples() const override { return 50; }
  std::string method() const override { return method_; }

 private:
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Event> event_;
  std::string method_;
};

std::vector<std::string> ways(Profile, const DeviceFacts& facts) {
  if (!can(facts, Can::choose_wait)) return {"own"};
  return {"spin", "yield", "block"};
}

const Registration launch_wait =
    benchmark("launch/wait")
        .asks("What does a launch take when the wait for it spins, yields or sleeps?")
        .process_axis("wait", ways, "own")
        .axis("by", {"stream", "event"})
        .metrics({"roundtrip_ns", "cpu_ns"})
        .samples([](Profile profile, const CaseName&) {
          return Sampling{profile == Profile::quick ? 3 : 10, 300};
        })
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 0.01 + 3e-5 * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .makes<WaitLaunch>();

}  // namespace
}  // namespace launchgap
