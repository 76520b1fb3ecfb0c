// Launches with a promise: cooperative ones, whose blocks are all there at once, and dependent
// ones, which may begin before the kernel ahead of them has ended.
#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr unsigned long long kDependentKernelNs = 5000;

class CooperativeLaunch : public Case {
 public:
  explicit CooperativeLaunch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::null_kernel)),
        cooperative_(context.name.at("launch") == "cooperative"),
        shape_{static_cast<unsigned>(context.device.facts().multiprocessors.value_or(1)), 64},
        method_(fmt::format("{}, {} blocks of {} threads",
                            launch_method(*kernel_, context.device.facts()),
                            shape_.blocks,
                            shape_.threads)) {
    verify_launches(
        context.device, *stream_, 100, [this](const Kernel& counting, void** arguments) {
          if (cooperative_) {
            stream_->launch_cooperative(counting, {1, 1}, arguments);
          } else {
            stream_->launch(counting, {1, 1}, arguments);
          }
        });
    launch();
    stream_->wait();
  }

  void sample(Block& block) override {
    sample_idle(
        block, [this] { launch(); }, [this] { stream_->wait(); });
  }

  int warm_up_samples() const override { return 20; }
  std::string method() const override { return method_; }

 private:
  void launch() {
    if (cooperative_) {
      stream_->launch_cooperative(*kernel_, shape_, nullptr);
    } else {
      stream_->launch(*kernel_, shape_, nullptr);
    }
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  bool cooperative_;
  LaunchShape shape_;
  std::string method_;
};

/// Kernels of 5 us, longer than a launch takes the host, each of which waits for the one before:
/// launched as dependent, what lies between two of them is done while the first one works.
class DependentLaunch : public Case {
 public:
  explicit DependentLaunch(const CaseContext& context)
      : device_(context.device), dependent_(context.name.at("launch") == "dependent") {
    need(device_.facts(), Capability::launch_dependently);
    stream_ = device_.create_stream();
    kernel_ = device_.load(kernels::dependent_kernel);
    counter_ = device_.allocate(sizeof(unsigned));
    stream_->fill_bytes(counter_->address(), 0, sizeof(unsigned));
    stream_->wait();
    run();
    check();
  }

  void sample(Block& block) override {
    sample_burst(
        block, kBurst, [this](int) { launch(); }, [this] { stream_->wait(); });
    launched_ += kBurst;
  }

  int warm_up_samples() const override { return 2; }
  void verify_timed_work() override { check(); }
  std::string method() const override {
    return fmt::format("{}, kernels of {} us",
                       launch_method(*kernel_, device_.facts()),
                       kDependentKernelNs / 1000);
  }

 private:
  void launch() {
    unsigned long long nanoseconds = kDependentKernelNs;
    void* counter = counter_->address();
    void* arguments[] = {&nanoseconds, &counter};
    if (dependent_) {
      stream_->launch_dependent(*kernel_, {1, 1}, arguments);
    } else {
      stream_->launch(*kernel_, {1, 1}, arguments);
    }
  }

  void run() {
    for (int i = 0; i < kBurst; ++i) launch();
    stream_->wait();
    launched_ += kBurst;
  }

  /// The kernels count without an atomic, so an overlap beyond what they allow loses counts.
  void check() {
    unsigned counted = 0;
    device_.read(*counter_, 0, &counted, sizeof counted);
    if (counted != launched_) {
      throw WrongResult("{} dependent kernels counted to {}", launched_, counted);
    }
  }

  Device& device_;
  bool dependent_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> counter_;
  unsigned launched_ = 0;
};

Sampling sampling(Profile profile, const CaseName&) {
  return {profile == Profile::quick ? 3 : 10, 200};
}

void advise_on_cooperative(Adviser& adviser) {
  adviser.judge_axis({"api_ns", "roundtrip_ns"},
                     "launch",
                     "plain",
                     {.of = "of a cooperative launch",
                      .than = "of a plain one",
                      .if_more = "Launch cooperatively only where blocks must wait for each other",
                      .if_less = "A cooperative launch is no dearer than a plain one",
                      .if_same = "A cooperative launch costs nothing",
                      .less = Severity::note});
}

void advise_on_dependent(Adviser& adviser) {
  adviser.judge_axis(
      {"per_kernel_ns"},
      "launch",
      "plain",
      {.of = "of programmatic dependents",
       .than = "of plain launches",
       .if_more = "Leave programmatic dependent launches alone",
       .if_less = "Launch kernels that follow one another as programmatic dependents",
       .if_same = "Programmatic dependent launches gain nothing"});
}

std::vector<FigureLine> call_lines(const std::string& kind, const std::string& metric) {
  return {{"plain", {{"launch", "plain"}}, metric}, {kind, {{"launch", kind}}, metric}};
}

const Registration launch_cooperative =
    benchmark("launch/cooperative")
        .asks("What does a cooperative launch add?")
        .axis("launch",
              "`plain`; `cooperative`: all blocks run at once and may wait for each other",
              {"plain", "cooperative"})
        .only([](Profile, const DeviceFacts& facts, const CaseName& name) {
          return can(facts, Capability::launch_cooperatively) || name.at("launch") == "cooperative";
        })
        .metrics({"api_ns", "roundtrip_ns"})
        .samples(sampling)
        .takes(0.01, 1.5e-5)
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_cooperative)
        .draws({{"In the call", call_lines("cooperative", "api_ns")},
                {"Round trip", call_lines("cooperative", "roundtrip_ns")}})
        .makes<CooperativeLaunch>();

const Registration launch_dependent =
    benchmark("launch/dependent")
        .asks("What does programmatic dependent launch save?")
        .axis("launch",
              "`plain`; `dependent`: a kernel may be launched before the one ahead ends",
              {"plain", "dependent"})
        .only([](Profile, const DeviceFacts& facts, const CaseName& name) {
          return can(facts, Capability::launch_dependently) || name.at("launch") == "dependent";
        })
        .metrics({"per_kernel_ns"})
        .samples({3, 5}, {10, 5})
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 0.01 + 8e-6 * kBurst * (sampling.blocks * (sampling.samples + 2) + 1);
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_dependent)
        .draws({{"Per kernel of " + duration_text(kDependentKernelNs),
                 call_lines("dependent", "per_kernel_ns")}})
        .makes<DependentLaunch>();

}  // namespace
}  // namespace launchgap
