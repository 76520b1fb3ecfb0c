// Whether it matters by which API a kernel is launched.
#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/device/device.h"
#include "harness/summary/adviser.h"

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

std::unique_ptr<Case> make_launching(const CaseContext& context) {
  need(context.device.facts(), Capability::launch_in_several_ways);
  if (context.name.at("api") == "driver")
    return std::make_unique<NullLaunch>(context.device, is_burst(context.name));
  return std::make_unique<RuntimeLaunch>(context);
}

void advise_on_api(Adviser& adviser) {
  for (const char* other : {"runtime", "chevron"}) {
    std::vector<Comparison> comparisons;
    for (const auto& [mode, metric] : kModes) {
      const auto row = [&, mode = mode, metric = metric](const char* path) {
        return adviser.rows.find({{"api", path}, {"mode", mode}}, metric);
      };
      if (const auto comparison = compare(row(other), row("driver")))
        comparisons.push_back(*comparison);
    }
    const std::string name =
        std::string_view(other) == "chevron" ? "<<<>>>" : "cudaLaunchKernelExC";
    adviser.judge(comparisons,
                  {.of = "with " + name,
                   .than = "with the driver API",
                   .if_more = "Launch through the driver API where launches count",
                   .if_less = "Launch with " + name + " where launches count",
                   .if_same = "Launching with " + name + " costs nothing"});
  }
}

std::vector<FigureLine> by_call(const std::string& mode, const std::string& metric) {
  std::vector<FigureLine> lines;
  for (const auto& [label, api] :
       {std::pair("driver API", "driver"), {"LaunchKernelExC", "runtime"}, {"<<<>>>", "chevron"}})
    lines.push_back({label, {{"api", api}, {"mode", mode}}, metric});
  return lines;
}

const Registration launch_api =
    benchmark("launch/api")
        .asks("Does it matter by which call a kernel is launched?")
        .axis("api",
              "the call: `driver`, cuLaunchKernelEx; `runtime`, cudaLaunchKernelExC; `chevron`, "
              "the runtime's `<<<>>>`",
              {"driver", "runtime", "chevron"})
        .axis("mode", mode_meaning(), {"idle", "burst"})
        .metrics(metrics_by_mode)
        .samples([](Profile profile, const CaseName& name) {
          const bool quick = profile == Profile::quick;
          return is_burst(name) ? Sampling{quick ? 3 : 10, 20} : Sampling{quick ? 3 : 10, 500};
        })
        .takes(seconds_by_mode)
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_api)
        .draws({{"In the call, idle stream", by_call("idle", "api_ns")},
                {"Per launch, back to back", by_call("burst", "per_launch_ns")}})
        .makes(make_launching);

}  // namespace
}  // namespace launchgap
