// A recorded program's step, done again here: as it was recorded, and as graphs. It answers whether
// launches bind that program on this machine, and what a graph would save.
#include <algorithm>

#include "benchmarks/launching.h"
#include "benchmarks/pattern_player.h"
#include "harness/core/errors.h"
#include "harness/measure/pattern_list.h"

namespace launchgap {
namespace {

struct ModeName {
  PatternMode mode;
  const char* name;
};
constexpr ModeName kPatternModes[] = {{PatternMode::eager, "eager"},
                                      {PatternMode::pool, "pool"},
                                      {PatternMode::graph, "graph"},
                                      {PatternMode::graph_update, "graph_update"}};

PatternMode mode_of(const CaseName& name) {
  const std::string& text = name.at("mode");
  const auto* const found = std::ranges::find(kPatternModes, text, &ModeName::name);
  if (found == std::end(kPatternModes)) throw Unsupported("a pattern has no mode '{}'", text);
  return found->mode;
}

bool has_copies(const CaseName& name) {
  const PatternTotals totals = totals_of(pattern_named(name.at("pattern")));
  return totals.copies + totals.fills > 0;
}

bool has_allocations(const CaseName& name) {
  return totals_of(pattern_named(name.at("pattern"))).allocations > 0;
}

std::vector<std::string_view> pattern_metrics(const CaseName& name) {
  std::vector<std::string_view> metrics = {
      "pattern_ns", "pattern_calls_ns", "pattern_waits_ns", "kernel_excess_ns"};
  if (has_copies(name)) metrics.emplace_back("copy_factor");
  if (has_allocations(name)) metrics.emplace_back("pattern_allocations_ns");
  return metrics;
}

class ReplayedPattern : public Case {
 public:
  explicit ReplayedPattern(const CaseContext& context)
      : player_(context.device, pattern_named(context.name.at("pattern")), mode_of(context.name)) {
    player_.verify();
    excess_ns_ = player_.kernel_excess_ns();
    if (has_copies(context.name)) copy_factor_ = player_.copy_factor();
    allocates_ = has_allocations(context.name);
  }

  void sample(Block& block) override {
    const PatternTimes times = player_.play();
    const auto keep = [&](auto... more) {
      block.keep(
          times.begin_ns, times.total_ns, times.calls_ns, times.waits_ns, excess_ns_, more...);
    };
    if (copy_factor_ && allocates_) {
      keep(*copy_factor_, times.allocations_ns);
    } else if (copy_factor_) {
      keep(*copy_factor_);
    } else if (allocates_) {
      keep(times.allocations_ns);
    } else {
      keep();
    }
  }

  int warm_up_samples() const override { return 1; }
  int operations_per_sample() const override { return static_cast<int>(player_.recorded_works()); }
  void verify_timed_work() override { player_.verify(); }
  std::string method() const override { return player_.method(); }

 private:
  PatternPlayer player_;
  double excess_ns_ = 0;
  std::optional<double> copy_factor_;
  bool allocates_ = false;
};

std::vector<std::string> pattern_axis(Profile, const DeviceFacts&) {
  std::vector<std::string> names;
  for (const Pattern& pattern : patterns_in_use()) names.push_back(pattern.origin.name);
  return names;
}

std::vector<std::string> pattern_modes(Profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::make_graphs)) return {"eager", "pool", "graph"};
  return {"eager", "pool", "graph", "graph_update"};
}

/// What a user asks for, in any profile; of what ships all in full. A pool is only another mode
/// where there are allocations that are not of it.
bool wanted_pattern(Profile profile, const DeviceFacts& facts, const CaseName& name) {
  if (!has_users_patterns() && profile != Profile::full) return false;
  if (name.at("mode") == "graph" && !has_users_patterns() && !can(facts, Capability::make_graphs))
    return false;
  const PatternTotals totals = totals_of(pattern_named(name.at("pattern")));
  return name.at("mode") != "pool" || totals.allocations > totals.pooled;
}

double seconds_once(const CaseName& name) {
  const Pattern& pattern = pattern_named(name.at("pattern"));
  constexpr double kSecondsPerCall = 5e-6;
  return 1e-9 * static_cast<double>(totals_of(pattern).longest_ns) +
         kSecondsPerCall * static_cast<double>(pattern.operations.size());
}

/// Each block about 0.3 s.
Sampling pattern_samples(Profile profile, const CaseName& name) {
  constexpr double kBlockSeconds = 0.3;
  const auto fitting = static_cast<int>(kBlockSeconds / std::max(1e-6, seconds_once(name)));
  return {profile == Profile::quick ? 2 : 3, std::clamp(fitting, 3, 50)};
}

const Registration launch_pattern =
    benchmark("launch/pattern")
        .asks("What does a recorded program's step take here, and what would a graph save?")
        .axis("pattern",
              "the recorded step: what `--pattern` names, or one of those that ship",
              pattern_axis)
        .axis("mode",
              "`eager`: each call as it was made; `pool`: the same with memory from the device's "
              "pool; `graph`: what is between two waits as one graph; `graph_update`: the same, "
              "captured and updated each time",
              pattern_modes)
        .only(wanted_pattern)
        .brings(host_time(
            "pattern_ns",
            "From the beginning of a step, as it was recorded, to the end of all of its work.",
            "",
            "the time of the step"))
        .brings(host_time("pattern_calls_ns",
                          "Of a step, until its last call returned, the time in calls that bring "
                          "work: all but the gaps, the waits and the allocations."))
        .brings(host_time(
            "pattern_waits_ns",
            "Of a step, the time in waits and in copies that block; with the wait for its end."))
        .brings(device_time("kernel_excess_ns",
                            "By how much each kernel of the pattern lasts longer on the device "
                            "than it should, from behind a gate; measured once in each process."))
        .brings({"copy_factor",
                 "1",
                 Direction::lower_is_better,
                 "events",
                 "How many times as long the pattern's copies and fills take on the device as they "
                 "did, likewise; where it has any.",
                 ""})
        .brings(host_time(
            "pattern_allocations_ns",
            "Of a step, the time in calls that take memory or give it back; where it has any."))
        .metrics(pattern_metrics)
        .samples(pattern_samples)
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          return 0.02 + seconds_once(name) * (sampling.blocks * (sampling.samples + 1) + 4);
        })
        .one_device_at_a_time()
        .traced_as(TracedAs::chain)
        .makes<ReplayedPattern>();

}  // namespace
}  // namespace launchgap
