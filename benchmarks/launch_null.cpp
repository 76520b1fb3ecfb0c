// What a kernel launch costs, when the kernel does nothing.
#include "benchmarks/launching.h"

namespace launchgap {
namespace {

const Registration null_launch =
    benchmark("launch/null")
        .asks("What does a launch cost when the kernel does nothing?")
        .axis("api", launching_api_meaning, launching_api)
        .axis("mode", mode_meaning(), {"idle", "burst"})
        .metrics(metrics_by_mode)
        .headline({"launch call", "mode:idle", "api_ns"})
        .headline({"p99.9", "mode:idle", "api_ns", Headline::Of::one_in_1000})
        .headline({"round trip", "mode:idle", "roundtrip_ns"})
        .headline({"per launch, burst", "mode:burst", "per_launch_ns"})
        .samples([](Profile profile, const CaseName& name) {
          const bool quick = profile == Profile::quick;
          return is_burst(name) ? Sampling{quick ? 5 : 10, quick ? 60 : 100}
                                : Sampling{quick ? 5 : 10, 2000};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          return 0.05 + seconds_by_mode(facts, name, sampling);
        })
        .one_device_at_a_time()
        .traced_as(traced_by_mode)
        .shows_observer_effect()
        .makes([](const CaseContext& context) {
          return std::make_unique<NullLaunch>(context.device, is_burst(context.name));
        });

}  // namespace
}  // namespace launchgap
