// What makes launches slower: the same empty launches without anything else, while something goes
// on beside them or happens between them, and afterwards.
#include <algorithm>
#include <functional>
#include <utility>

#include "benchmarks/interferences.h"
#include "benchmarks/launching.h"
#include "harness/core/phases.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

/// Metrics of the host's clock, by phase.
std::vector<std::string_view> phase_metrics(const CaseName& name) {
  if (is_burst(name))
    return {"quiet_per_launch_ns", "disturbed_per_launch_ns", "after_per_launch_ns"};
  return {"quiet_api_ns",
          "disturbed_api_ns",
          "after_api_ns",
          "quiet_roundtrip_ns",
          "disturbed_roundtrip_ns",
          "after_roundtrip_ns"};
}

class InterferenceLaunch : public Case {
 public:
  explicit InterferenceLaunch(const CaseContext& context)
      : burst_(is_burst(context.name)),
        kind_(interference_named(context.name.at("beside"))),
        stream_(stream_of(context, kind_)),
        kernel_(context.device.load(kernels::null_kernel)),
        interference_(kind_.make(context, *stream_)),
        method_(launch_method(*kernel_, context.device.facts())) {
    verify_launches(context.device, *stream_);
    // Once before anything is timed: what it loads and allocates is not what is asked for.
    interference_->begin();
    for (int i = 0; i < 3; ++i) {
      interference_->before_launch();
      launch_and_wait();
    }
    interference_->end();
    interference_->verify();
    for (int i = 0; i < kWarmUp; ++i) launch_and_wait();
  }

  void sample(Block& block) override {
    const Phase phase = phase_of(block.size(), block.capacity());
    if (phase != last_) {
      if (phase == Phase::disturbed) interference_->begin();
      if (phase == Phase::after) interference_->end();
      last_ = phase;
    }
    if (phase == Phase::disturbed) interference_->before_launch();
    const auto wait = [this] { stream_->wait(); };
    if (burst_) {
      keep_burst(block,
                 phase,
                 time_burst(
                     kBurst, [this](int) { launch(); }, wait));
    } else {
      keep_idle(block, phase, time_idle([this] { launch(); }, wait));
    }
  }

  int warm_up_samples() const override { return burst_ ? 1 : 20; }
  int operations_per_sample() const override { return burst_ ? kBurst : 1; }
  int processes() const override { return interference_->processes(); }
  void verify_timed_work() override { interference_->verify(); }
  std::string method() const override {
    return fmt::format("{}; disturbed: {}", method_, kind_.meaning);
  }

 private:
  static constexpr int kWarmUp = 200;

  static std::unique_ptr<Stream> stream_of(const CaseContext& context,
                                           const InterferenceKind& kind) {
    StreamOptions options;
    options.ordered_with_default = kind.needs_default_stream;
    return context.device.create_stream(options);
  }

  void launch() { stream_->launch(*kernel_, {1, 1}, nullptr); }
  void launch_and_wait() {
    launch();
    stream_->wait();
  }

  /// The metrics of the other phases have no value.
  static void keep_burst(Block& block, Phase phase, const BurstTimes& times) {
    const auto of = [&](Phase own) { return own == phase ? times.per_launch_ns : Block::kMissing; };
    block.keep(times.begin_ns, of(Phase::quiet), of(Phase::disturbed), of(Phase::after));
  }
  static void keep_idle(Block& block, Phase phase, const IdleTimes& times) {
    const auto of = [&](Phase own, std::int64_t ns) {
      return own == phase ? static_cast<double>(ns) : Block::kMissing;
    };
    block.keep(times.begin_ns,
               of(Phase::quiet, times.api_ns),
               of(Phase::disturbed, times.api_ns),
               of(Phase::after, times.api_ns),
               of(Phase::quiet, times.roundtrip_ns),
               of(Phase::disturbed, times.roundtrip_ns),
               of(Phase::after, times.roundtrip_ns));
  }

  bool burst_;
  const InterferenceKind& kind_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Interference> interference_;
  std::string method_;
  Phase last_ = Phase::quiet;
};

std::vector<std::string> kind_names(Profile profile, const DeviceFacts&) {
  std::vector<std::string> names;
  for (const InterferenceKind& kind : interference_kinds()) {
    if (profile != Profile::quick || kind.quick) names.emplace_back(kind.name);
  }
  return names;
}

std::string kinds_meaning() {
  std::string text;
  for (const InterferenceKind& kind : interference_kinds())
    text += fmt::format("{}`{}`: {}", text.empty() ? "" : "; ", kind.name, kind.meaning);
  return text;
}

/// Bursts are some hundred launches each.
Sampling samples(Profile profile, const CaseName& name) {
  const InterferenceKind& kind = interference_named(name.at("beside"));
  const int blocks = profile == Profile::quick ? 3 : profile == Profile::nightly ? 6 : 10;
  const int launches = is_burst(name)              ? std::max(10, kind.launches / 20)
                       : profile == Profile::quick ? (kind.launches + 3) / 4
                                                   : kind.launches;
  return {blocks, static_cast<int>(kPhases.size()) * launches};
}

/// The strongest first, of those that are certain; what costs nothing in one sentence.
void advise_on_interference(Adviser& adviser) {
  std::vector<std::pair<const InterferenceKind*, Comparison>> slower;
  std::vector<Comparison> same;
  std::size_t unclear = 0;
  for (const InterferenceKind& kind : interference_kinds()) {
    const Params params = {{"beside", kind.name}, {"mode", "idle"}};
    const auto comparison = compare_in_pairs(adviser.rows.find(params, "disturbed_roundtrip_ns"),
                                             adviser.rows.find(params, "quiet_roundtrip_ns"));
    if (!comparison) continue;
    if (comparison->ratio.verdict == RatioVerdict::more) {
      slower.emplace_back(&kind, *comparison);
    } else if (comparison->ratio.verdict == RatioVerdict::same ||
               comparison->ratio.verdict == RatioVerdict::less) {
      same.push_back(*comparison);
    } else {
      ++unclear;
    }
  }
  std::ranges::sort(
      slower, std::ranges::greater(), [](const auto& entry) { return *entry.second.ratio.value; });
  const std::string rest =
      unclear == 0 ? "" : fmt::format(" Of {} more these runs cannot tell.", unclear);
  if (slower.empty()) {
    if (!same.empty())
      adviser.say(
          unclear == 0 ? Severity::fine : Severity::open,
          fmt::format("No interference that can be told ({}) makes launches slower (p50).{}",
                      same.size(),
                      rest),
          {deciding(same)});
    return;
  }
  constexpr std::size_t kMost = 3;
  std::vector<std::string> worst;
  std::vector<Comparison> evidence;
  for (const auto& [kind, comparison] : slower) {
    if (worst.size() == kMost) break;
    worst.push_back(fmt::format(
        "{} ({} times the round trip)", kind->in_words, sure_times_text(comparison.ratio)));
    evidence.push_back(comparison);
  }
  adviser.say(
      Severity::note,
      fmt::format("Launches are slower {}{}.{}",
                  fmt::join(worst, ", "),
                  slower.size() > kMost ? fmt::format(", and {} more", slower.size() - kMost) : "",
                  rest),
      evidence);
}

const Registration launch_interference =
    benchmark("launch/interference")
        .asks("What makes launches slower, by how much, and for how long afterwards?")
        .axis("beside", kinds_meaning(), kind_names)
        .axis("mode", mode_meaning(), by_profile({"idle"}, {"idle", "burst"}))
        .only([](Profile, const DeviceFacts&, const CaseName& name) {
          // What happens between launches would happen between bursts.
          return !is_burst(name) || !interference_named(name.at("beside")).between;
        })
        .metrics(phase_metrics)
        .brings(host_time("quiet_api_ns",
                          "Time inside the launch call, while nothing else goes on.",
                          "",
                          "the time in the call of quiet launches"))
        .brings(host_time(
            "disturbed_api_ns",
            "Time inside the launch call, while the interference goes on, or right after it.",
            "",
            "the time in the call of disturbed launches"))
        .brings(host_time("after_api_ns",
                          "Time inside the launch call, once it is over.",
                          "",
                          "the time in the call after the interference"))
        .brings(host_time(
            "quiet_roundtrip_ns",
            "From the start of the launch call until the wait returns, while nothing else goes on.",
            "",
            "the round trip of quiet launches"))
        .brings(host_time("disturbed_roundtrip_ns",
                          "From the start of the launch call until the wait returns, while the "
                          "interference goes on, or right after it.",
                          "",
                          "the round trip of disturbed launches"))
        .brings(
            host_time("after_roundtrip_ns",
                      "From the start of the launch call until the wait returns, once it is over.",
                      "",
                      "the round trip after the interference"))
        .brings(host_time("quiet_per_launch_ns",
                          "For each launch of a burst and one wait, while nothing else goes on.",
                          "",
                          "the time per launch of quiet launches"))
        .brings(host_time("disturbed_per_launch_ns",
                          "For each launch of a burst and one wait, while the interference goes "
                          "on, or right after it.",
                          "",
                          "the time per launch of disturbed launches"))
        .brings(host_time("after_per_launch_ns",
                          "For each launch of a burst and one wait, once it is over.",
                          "",
                          "the time per launch after the interference"))
        .samples(samples)
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const InterferenceKind& kind = interference_named(name.at("beside"));
          const double preparing = kind.name.starts_with("process") ? 3 : 0.1;
          const double launches = seconds_by_mode(facts, name, sampling);
          return preparing + (is_gpu(facts) ? 1 : 2) * launches + kind.seconds * sampling.blocks;
        })
        .one_device_at_a_time()
        .traced_as([](const CaseName& name) {
          return is_burst(name) ? TracedAs::unseen : TracedAs::first_launch;
        })
        .advises(advise_on_interference)
        .answers_on_terminal()
        .makes<InterferenceLaunch>();

}  // namespace
}  // namespace launchgap
