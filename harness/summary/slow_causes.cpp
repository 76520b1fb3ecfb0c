#include "harness/summary/slow_causes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "harness/core/plan.h"
#include "harness/measure/telemetry.h"
#include "harness/measure/thread_watch.h"
#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

constexpr std::size_t kLeastSamples = 20;
constexpr double kSlowTimes = 1.5;       // the median
constexpr double kSlowRanges = 3;        // interquartile ranges above the third quartile
constexpr double kMostUsual = 0.05;      // of usual samples that have an event
constexpr double kMostByChance = 0.05;   // of slow ones that have it
constexpr double kMostIfNone = 0.01;     // that as many have it where it explains none
constexpr double kMostOfAFaultNs = 1e6;  // a page of 2 MiB that is cleared
constexpr double kSlowBlock = 1.1;       // the median of the run's other blocks
constexpr double kLeastHeld = 0.1;       // of a block's time, that clocks were held down
constexpr double kLowerClock = 0.95;     // of the others' median
constexpr double kLowerCpuClock = 0.9;   // the same of a CPU's, which is read as it is just then

/// Where the samples of a block are among all of its run.
struct BlockPlace {
  int block = 0;
  std::size_t from = 0, count = 0;
};

/// What is known of the cases' runs beside their samples.
class Observations {
 public:
  explicit Observations(const SessionData& session) {
    for (const ThreadEventsInfo& info : session.thread_events)
      threads_[{info, info.record.case_name}][info.record.block] = &info.record;
    for (const TelemetryInfo& info : session.telemetry)
      telemetry_[{info, info.case_name}][info.block] = &info;
  }

  const ThreadEventsRecord* thread(const CaseRun& run, int block) const {
    return of_block(threads_, run, block);
  }

  BlockTelemetry telemetry(const CaseRun& run, int block) const {
    BlockTelemetry rates;
    const TelemetryInfo* const before = of_block(telemetry_, run, block - 1);
    const TelemetryInfo* const after = of_block(telemetry_, run, block);
    if (!before || !after) return rates;
    const double seconds = 1e-9 * static_cast<double>(after->at_ns - before->at_ns);
    for (const TelemetryQuantity& quantity : telemetry_quantities()) {
      const std::string key(quantity.key);
      const auto now = after->values.find(key);
      if (now == after->values.end()) continue;
      if (!quantity.counter) {
        rates[key] = now->second;
        continue;
      }
      const auto was = before->values.find(key);
      if (was != before->values.end() && seconds > 0)
        rates[key] = (now->second - was->second) / seconds;
    }
    return rates;
  }

 private:
  template <class Kept>
  using ByBlock = std::map<CaseRun, std::map<int, const Kept*>>;

  template <class Kept>
  static const Kept* of_block(const ByBlock<Kept>& all, const CaseRun& run, int block) {
    const auto own = all.find(run);
    if (own == all.end()) return nullptr;
    const auto found = own->second.find(block);
    return found == own->second.end() ? nullptr : found->second;
  }

  ByBlock<ThreadEventsRecord> threads_;
  ByBlock<TelemetryInfo> telemetry_;
};

double value_of(const BlockTelemetry& telemetry, const std::string& key) {
  const auto found = telemetry.find(key);
  return found == telemetry.end() ? 0 : found->second;
}

double usual_value(std::span<const BlockTelemetry> blocks, const std::string& key) {
  std::vector<double> values;
  for (const BlockTelemetry& block : blocks) values.push_back(value_of(block, key));
  return stats::median(std::move(values)).value_or(0);
}

/// Of a gauge that differs from block to block: by more than those of the others differ.
bool is_lower_than_all(const BlockTelemetry& slow,
                       std::span<const BlockTelemetry> others,
                       const std::string& key) {
  const double own = value_of(slow, key);
  return own > 0 && !others.empty() && own < kLowerCpuClock * usual_value(others, key) &&
         std::ranges::all_of(
             others, [&](const BlockTelemetry& other) { return own < value_of(other, key); });
}

std::vector<BlockPlace> places_of(const CaseData& data, const std::string& metric, int replicate) {
  std::vector<BlockPlace> places;
  std::size_t from = 0;
  for (const BlockInfo& block : data.blocks) {
    if (block.replicate != replicate) continue;
    const auto count = block.counts.find(metric);
    if (count == block.counts.end()) continue;
    places.push_back({block.block, from, count->second});
    from += count->second;
  }
  return places;
}

/// One run of a case, taken apart.
class RunParts {
 public:
  RunParts(const Observations& observations, CaseRun run, std::span<const double> values)
      : observations_(observations), run_(std::move(run)), values_(values) {
    std::vector<double> copy(values.begin(), values.end());
    median_ = stats::quantile_in_place(copy, 0.5).value_or(0);
    limit_ = slow_limit(values);
  }

  /// Calls `add(of_blocks, cause, value, extra)` for each slow sample.
  void each(const std::vector<BlockPlace>& places, const auto& add) const {
    if (!limit_) return;
    const std::vector<SlowBlock> slow_blocks = find_slow_blocks(places);
    std::vector<const WatchedSample*> slow;
    ThreadEvents usual;
    for (std::size_t i = 0; i < places.size(); ++i)
      divide(places[i], slow_blocks[i].extra_ns, slow, usual);
    const EventRule rule(slow, usual);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto& [cause, block_ns] = slow_blocks[i];
      const ThreadEventsRecord* const thread = observations_.thread(run_, places[i].block);
      for (std::size_t sample = 0; sample < places[i].count; ++sample) {
        if (cause) add(true, *cause, median_ + block_ns, block_ns);
        if (!is_slow(places[i], sample, block_ns)) continue;
        const double value = values_[places[i].from + sample], extra = value - median_ - block_ns;
        const WatchedSample* const watched = thread ? find(*thread, sample) : nullptr;
        add(false, watched ? rule.cause_of(*watched, extra) : TailCause::unexplained, value, extra);
      }
    }
  }

 private:
  /// What a block adds to each of its samples, and why; nothing where it is not slow.
  struct SlowBlock {
    std::optional<TailCause> cause;
    double extra_ns = 0;
  };

  bool is_slow(const BlockPlace& place, std::size_t sample, double block_ns) const {
    return values_[place.from + sample] > *limit_ + block_ns;
  }

  static const WatchedSample* find(const ThreadEventsRecord& thread, std::size_t sample) {
    const auto found = std::ranges::lower_bound(thread.slow, sample, {}, &WatchedSample::sample);
    return found != thread.slow.end() && found->sample == sample ? &*found : nullptr;
  }

  /// What was looked at in a block: of its slow samples, and over all others.
  void divide(const BlockPlace& place,
              double block_ns,
              std::vector<const WatchedSample*>& slow,
              ThreadEvents& usual) const {
    const ThreadEventsRecord* const thread = observations_.thread(run_, place.block);
    if (!thread) return;  // what happened in it is not known
    usual.add(thread->usual);
    for (const WatchedSample& watched : thread->slow) {
      if (watched.sample >= place.count) continue;
      if (is_slow(place, watched.sample, block_ns)) {
        slow.push_back(&watched);
      } else {
        usual.count(watched.events);
      }
    }
  }

  std::vector<SlowBlock> find_slow_blocks(const std::vector<BlockPlace>& places) const {
    constexpr std::size_t kFewestBlocks = 3;
    std::vector<SlowBlock> found(places.size());
    if (places.size() < kFewestBlocks) return found;
    std::vector<double> levels;
    for (const BlockPlace& place : places) {
      const auto own = values_.subspan(place.from, place.count);
      levels.push_back(stats::median({own.begin(), own.end()}).value_or(0));
    }
    const double least_slow = kSlowBlock * *stats::median(levels);
    std::vector<std::size_t> slow;
    std::vector<BlockTelemetry> others;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (levels[i] > least_slow) {
        slow.push_back(i);
      } else {
        others.push_back(observations_.telemetry(run_, places[i].block));
      }
    }
    for (const std::size_t i : slow) {
      found[i] = {cause_of_block(observations_.telemetry(run_, places[i].block), others),
                  levels[i] - median_};
    }
    return found;
  }

  const Observations& observations_;
  CaseRun run_;
  std::span<const double> values_;
  double median_ = 0;
  std::optional<double> limit_;
};

void add_metric(const Observations& observations,
                const CaseKey& key,
                const CaseData& data,
                const std::string& metric,
                std::vector<SlowPart>& parts) {
  std::map<std::pair<bool, TailCause>, SlowPart> found;
  std::uint64_t samples = 0;
  double extra_ns = 0;
  for (const auto& [replicate, values] : data.samples.at(metric)) {
    samples += values.size();
    RunParts(observations, key.in_run(replicate), values)
        .each(places_of(data, metric, replicate),
              [&](bool of_blocks, TailCause cause, double value, double extra) {
                SlowPart& part = found[{of_blocks, cause}];
                ++part.samples;
                part.extra_ns += extra;
                part.longest_ns = std::max(part.longest_ns, value);
                extra_ns += extra;
              });
  }
  if (found.empty()) return;
  found.try_emplace({false, TailCause::unexplained});
  for (auto& [which, part] : found) {
    part.key = key;
    part.metric = metric;
    std::tie(part.of_blocks, part.cause) = which;
    part.of_samples = samples;
    part.extra_share = extra_ns > 0 ? part.extra_ns / extra_ns : 0;
    parts.push_back(std::move(part));
  }
}

}  // namespace

std::optional<double> slow_limit(std::span<const double> values) {
  if (values.size() < kLeastSamples) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  const double q1 = *stats::quantile_in_place(sorted, 0.25);
  const double q3 = *stats::quantile_in_place(sorted, 0.75);
  const double p50 = *stats::quantile_in_place(sorted, 0.5);
  return std::max(kSlowTimes * p50, q3 + kSlowRanges * (q3 - q1));
}

EventRule::EventRule(std::span<const WatchedSample* const> slow, const ThreadEvents& usual) {
  const auto n = static_cast<double>(slow.size());
  const auto usual_samples = static_cast<double>(std::max<std::uint64_t>(1, usual.samples));
  for (const auto event : {&ThreadEvents::pauses,
                           &ThreadEvents::moves,
                           &ThreadEvents::involuntary,
                           &ThreadEvents::faults,
                           &ThreadEvents::voluntary}) {
    const double rate = static_cast<double>(usual.*event) / usual_samples;
    const auto having = static_cast<double>(std::ranges::count_if(
        slow, [&](const WatchedSample* watched) { return watched->events.*event > 0; }));
    if (having == 0 || rate > kMostUsual) continue;
    // Of those that it does not explain, as many have it by chance as usual samples do.
    const double by_chance = rate * (n - having) / (1 - rate);
    if (by_chance > kMostByChance * having) continue;
    if (stats::binomial_at_least(n, rate, having) <= kMostIfNone) counting_.push_back(event);
  }
}

bool EventRule::counts(std::uint64_t ThreadEvents::*event) const {
  return std::ranges::find(counting_, event) != counting_.end();
}

TailCause EventRule::cause_of(const WatchedSample& watched, double extra_ns) const {
  const ThreadEvents& own = watched.events;
  const auto has = [&](std::uint64_t ThreadEvents::*event) {
    return own.*event > 0 && counts(event);
  };
  // A pause explains what comes behind it, and what happened within it explains nothing.
  if (own.pauses > 0)
    return has(&ThreadEvents::pauses) ? TailCause::after_pause : TailCause::unexplained;
  if (has(&ThreadEvents::moves)) return TailCause::migration;
  if (has(&ThreadEvents::involuntary)) return TailCause::host_pause;
  if (has(&ThreadEvents::faults) && extra_ns <= kMostOfAFaultNs * static_cast<double>(own.faults))
    return TailCause::page_fault;
  return has(&ThreadEvents::voluntary) ? TailCause::blocked : TailCause::unexplained;
}

TailCause cause_of_block(const BlockTelemetry& slow, std::span<const BlockTelemetry> others) {
  constexpr double kNsPerSecond = 1e9;
  const auto was_held = [&](std::initializer_list<const char*> counters) {
    double held = 0, usually = 0;
    for (const char* const counter : counters) {
      held += value_of(slow, counter) / kNsPerSecond;
      usually += usual_value(others, counter) / kNsPerSecond;
    }
    return held >= kLeastHeld && held > 2 * usually;
  };
  if (was_held({"held_by_sw_thermal_ns", "held_by_hw_thermal_ns"})) return TailCause::heat;
  if (was_held({"held_by_power_cap_ns", "held_by_sync_boost_ns", "held_by_power_brake_ns"}))
    return TailCause::clocks;
  const double clock = value_of(slow, "sm_clock_mhz"), usual = usual_value(others, "sm_clock_mhz");
  if (clock > 0 && clock < kLowerClock * usual) return TailCause::clocks;
  if (is_lower_than_all(slow, others, "cpu_mhz")) return TailCause::clocks;
  if (value_of(slow, "other_processes") > usual_value(others, "other_processes"))
    return TailCause::neighbour;
  // Of each second, so much; and twice as much as usual.
  const auto grew = [&](const char* counter, double per_second) {
    const double own = value_of(slow, counter);
    return own >= kLeastHeld * per_second && own > 2 * usual_value(others, counter);
  };
  if (grew("stolen_ms", 1e3)) return TailCause::neighbour;
  if (grew("sibling_busy_ms", 1e3)) return TailCause::sibling;
  return grew("deep_idle_us", 1e6) ? TailCause::deep_idle : TailCause::unexplained;
}

std::vector<SlowPart> slow_parts(const SessionData& session) {
  std::vector<SlowPart> parts;
  const Observations observations(session);
  for (const auto& [key, data] : session.cases) {
    if (key.arm == kRecorded || key.arm == kPublished) continue;
    if (key.name.benchmark == "launch/interference") continue;
    for (const std::string& metric : data.metric_order) {
      if (is_watched(metric)) add_metric(observations, key, data, metric, parts);
    }
  }
  return parts;
}

Table slow_causes_table() {
  using Row = const SlowPart&;
  return make_table<SlowPart>(
      "slow_causes.csv",
      "case and metric that has slow samples, and cause",
      TableUse::details,
      [](const TableInputs& from) { return slow_parts(from.session); },
      {{"device_id", [](Row row) { return row.key.device; }},
       {"arm", [](Row row) { return row.key.arm; }},
       {"process_config", [](Row row) { return row.key.process_config.text(); }},
       {"case", [](Row row) { return row.key.name.text(); }},
       {"metric",
        "By which they are slow: each of the case's times on the host's clock but CPU time.",
        &SlowPart::metric},
       {"level",
        "sample: it alone is slow; block: what its block adds to each of its samples, where the "
        "block's median is above 1.1 times that of the run's blocks.",
        [](Row row) { return row.of_blocks ? "block" : "sample"; }},
       {"cause",
        "As in definitions.md, \"Why samples are slow\".",
        [](Row row) { return name_of(row.cause); }},
       {"samples", "Slow ones with this cause.", &SlowPart::samples},
       {"of_samples", "All that the case has.", &SlowPart::of_samples},
       {"extra_ns", "What they take above the medians of their runs.", &SlowPart::extra_ns},
       {"extra_share", "Of what all slow samples of the case take above.", &SlowPart::extra_share},
       {"longest_ns", "The longest of them.", &SlowPart::longest_ns}});
}

}  // namespace launchgap
