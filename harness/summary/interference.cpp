#include "harness/summary/interference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "harness/core/phases.h"
#include "harness/core/verdict.h"
#include "harness/stats/stats.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

constexpr std::string_view kBenchmark = "launch/interference";
constexpr std::array<std::string_view, 4> kMetrics = {"api_ns",
                                                      "roundtrip_ns",
                                                      "per_launch_ns",
                                                      "launch_ns"};

/// Values of one run, whose order is lost.
using StatisticOf = std::optional<double> (*)(std::vector<double>& values);
struct Statistic {
  std::string_view name;
  StatisticOf of;
  std::size_t least;  // launches of a run
};
constexpr Statistic kStatistics[] = {
    {"p50", [](std::vector<double>& v) { return stats::quantile_in_place(v, 0.5); }, 1},
    {"mean", [](std::vector<double>& v) { return stats::mean(v); }, 1},
    {"p99", [](std::vector<double>& v) { return stats::quantile_in_place(v, 0.99); }, 200},
    {"p99.9", [](std::vector<double>& v) { return stats::quantile_in_place(v, 0.999); }, 2000}};

/// Samples by run.
using Runs = std::map<int, std::vector<double>>;

const Runs* samples_of(const CaseData& data, Phase phase, std::string_view metric) {
  const auto found = data.samples.find(metric_of(phase, metric));
  return found == data.samples.end() ? nullptr : &found->second;
}

std::vector<double> by_run(const Runs& runs,
                           const std::vector<int>& replicates,
                           const Statistic& statistic) {
  std::vector<double> values;
  for (const int replicate : replicates) {
    std::vector<double> own = runs.at(replicate);
    values.push_back(*statistic.of(own));
  }
  return values;
}

std::vector<int> runs_with(const Runs& quiet, const Runs& disturbed, std::size_t least) {
  std::vector<int> replicates;
  for (const auto& [replicate, values] : quiet) {
    const auto other = disturbed.find(replicate);
    if (other != disturbed.end() && values.size() >= least && other->second.size() >= least)
      replicates.push_back(replicate);
  }
  return replicates;
}

/// By the place of a launch behind the interference: medians of a run's blocks.
class AfterLaunches {
 public:
  AfterLaunches(const CaseData& data, std::string_view metric) {
    const std::string key = metric_of(Phase::after, metric);
    const Runs* const runs = samples_of(data, Phase::after, metric);
    if (!runs) return;
    std::map<int, std::size_t> read;
    for (const BlockInfo& block : data.blocks) {
      const auto count = block.counts.find(key);
      const auto own = runs->find(block.replicate);
      if (count == block.counts.end() || own == runs->end()) continue;
      std::size_t& from = read[block.replicate];
      const std::size_t n = std::min(count->second, own->second.size() - from);
      if (n == 0) continue;
      auto& blocks = blocks_[block.replicate];
      blocks.emplace_back(std::span(own->second).subspan(from, n));
      from += n;
      places_ = places_ == 0 ? n : std::min(places_, n);
    }
  }
  std::size_t places() const { return places_; }

  /// Of the launches from place `from` to before `to`.
  std::optional<double> median(int replicate, std::size_t from, std::size_t to) const {
    const auto own = blocks_.find(replicate);
    if (own == blocks_.end()) return std::nullopt;
    std::vector<double> values;
    for (const std::span<const double> block : own->second) {
      const auto part = block.subspan(from, to - from);
      values.insert(values.end(), part.begin(), part.end());
    }
    return stats::median(std::move(values));
  }

 private:
  std::map<int, std::vector<std::span<const double>>> blocks_;
  std::size_t places_ = 0;
};

/// In groups of 1, 1, 2, 4, … launches, until one is not slower than the quiet ones. A group that
/// tells nothing is taken together with the next; absent where the last tells nothing.
std::optional<Aftermath> aftermath_of(const AfterLaunches& after,
                                      const std::vector<int>& replicates,
                                      const std::vector<double>& quiet) {
  Aftermath found;
  for (std::size_t from = 0, to = 0; from < after.places();) {
    to = std::min(after.places(), std::max<std::size_t>(1, 2 * to));
    std::vector<double> levels;
    for (const int replicate : replicates) {
      if (const auto level = after.median(replicate, from, to)) levels.push_back(*level);
    }
    const rules::RatioVerdict verdict = rules::paired_ratio_of(levels, quiet).verdict;
    if (verdict == rules::RatioVerdict::same || verdict == rules::RatioVerdict::less) return found;
    if (verdict != rules::RatioVerdict::more) {
      if (to == after.places()) return std::nullopt;
      continue;
    }
    found.launches = to;
    found.ns += *stats::median(levels) * static_cast<double>(to - from);
    from = to;
  }
  if (after.places() == 0) return std::nullopt;
  found.longer = true;
  return found;
}

void add_rows(const CaseKey& key, const CaseData& data, std::vector<InterferenceRow>& rows) {
  for (const std::string_view metric : kMetrics) {
    const Runs* const quiet = samples_of(data, Phase::quiet, metric);
    const Runs* const disturbed = samples_of(data, Phase::disturbed, metric);
    if (!quiet || !disturbed) continue;
    for (const Statistic& statistic : kStatistics) {
      const std::vector<int> replicates = runs_with(*quiet, *disturbed, statistic.least);
      if (replicates.empty()) continue;
      const std::vector<double> usual = by_run(*quiet, replicates, statistic);
      const std::vector<double> slow = by_run(*disturbed, replicates, statistic);
      const rules::Ratio ratio = rules::paired_ratio_of(slow, usual);
      if (!ratio.value || !std::isfinite(*ratio.value)) continue;
      InterferenceRow& row = rows.emplace_back();
      row.key = key;
      row.metric = metric;
      row.statistic = statistic.name;
      row.runs = replicates.size();
      for (const int replicate : replicates) row.launches += disturbed->at(replicate).size();
      row.quiet_ns = *stats::geometric_mean(usual);
      row.disturbed_ns = *stats::geometric_mean(slow);
      row.ratio = ratio;
      // A place behind the interference is a launch only where each is a sample.
      const bool each_is_a_sample = metric == "api_ns" || metric == "roundtrip_ns";
      if (&statistic != std::begin(kStatistics) || !each_is_a_sample ||
          ratio.verdict != rules::RatioVerdict::more) {
        continue;
      }
      row.aftermath = aftermath_of(AfterLaunches(data, metric), replicates, usual);
    }
  }
}

}  // namespace

std::optional<stats::Interval> InterferenceRow::added_interval_ns() const {
  if (!ratio.interval) return std::nullopt;
  return stats::Interval{quiet_ns * (ratio.interval->low - 1),
                         quiet_ns * (ratio.interval->high - 1)};
}

std::string_view InterferenceRow::verdict() const {
  return name_of(rules::time_verdict(ratio.verdict));
}

std::vector<InterferenceRow> interference_rows(const SessionData& session) {
  std::vector<InterferenceRow> rows;
  for (const auto& [key, data] : session.cases) {
    // A record may have any case.
    if (key.name.benchmark == kBenchmark && key.name.find("beside") && key.name.find("mode"))
      add_rows(key, data, rows);
  }
  return rows;
}

Table interference_table() {
  using Row = const InterferenceRow&;
  return make_table<InterferenceRow>(
      "interference.csv",
      "interference, device, arm, metric and statistic",
      TableUse::details,
      [](const TableInputs& from) { return interference_rows(from.session); },
      {{"device_id", [](Row row) { return row.key.device; }},
       {"arm", [](Row row) { return row.key.arm; }},
       {"beside",
        "What went on beside the launches, or between them, as the axis of `launch/interference` "
        "names it.",
        [](Row row) { return row.key.name.at("beside"); }},
       {"mode",
        "idle: launch and wait, each time; burst: many launches and one wait.",
        [](Row row) { return row.key.name.at("mode"); }},
       {"metric", "What was measured, without the phase.", &InterferenceRow::metric},
       {"statistic",
        "p50; mean, which shows what is rare and long; p99 where each run has 200 launches of a "
        "phase; p99.9 where it has 2,000.",
        &InterferenceRow::statistic},
       {"runs", "Processes that have both, which are pairs.", &InterferenceRow::runs},
       {"launches", "Disturbed ones, or bursts of them.", &InterferenceRow::launches},
       {"quiet_ns",
        "Without the interference, in the same processes: geometric mean of the runs' statistics.",
        &InterferenceRow::quiet_ns},
       {"disturbed_ns", "With it, likewise.", &InterferenceRow::disturbed_ns},
       {"added_ns", "disturbed_ns less quiet_ns.", &InterferenceRow::added_ns},
       {"added_lo_ns",
        "Lower end of its 95 % interval, by the ratios in the runs; empty for one run.",
        if_any(&InterferenceRow::added_interval_ns, &stats::Interval::low)},
       {"added_hi_ns",
        "Upper end.",
        if_any(&InterferenceRow::added_interval_ns, &stats::Interval::high)},
       {"times", "disturbed_ns by quiet_ns.", [](Row row) { return row.ratio.value; }, "1"},
       {"verdict",
        "slower, faster: the interval excludes 1, by three runs and 5 % at least; same; "
        "cannot-tell: too few runs, or the interval is too wide.",
        &InterferenceRow::verdict},
       {"lasts_launches",
        "How many launches are slower once it is over, in groups of 1, 1, 2, 4, … that are each "
        "judged as above; of medians of single launches that are slower. Empty where these runs "
        "cannot tell.",
        if_any(&InterferenceRow::aftermath, &Aftermath::launches)},
       {"lasts_ns", "What these take.", if_any(&InterferenceRow::aftermath, &Aftermath::ns)},
       {"lasts_longer",
        "true: all launches that were measured afterwards are slower.",
        if_any(&InterferenceRow::aftermath, &Aftermath::longer)}});
}

namespace {

/// A call with its times beside a kernel that ran.
struct BlockingCall {
  const SummaryRow* share = nullptr;
  const SummaryRow* gap = nullptr;    // of another thread's launches, during the call
  const SummaryRow* quiet = nullptr;  // and before it
};

std::string_view verdict_of(double blocked_share) {
  if (blocked_share > 0.8) return "waits_for_device";
  return blocked_share < 0.1 ? "no_wait" : "partial";
}

std::optional<double> median_of(const SummaryRow* row) {
  return row ? row->p50 : std::nullopt;
}

std::vector<BlockingCall> blocking_calls(const std::vector<SummaryRow>& rows) {
  std::vector<BlockingCall> calls;
  for (const SummaryRow& row : rows) {
    if (row.metric != "blocked_share" || !row.p50) continue;
    const auto beside = [&](std::string_view metric) {
      const auto found = std::ranges::find_if(rows, [&](const SummaryRow& other) {
        return other.key == row.key && other.metric == metric;
      });
      return found == rows.end() ? nullptr : &*found;
    };
    calls.push_back({&row, beside("launch_gap_ns"), beside("quiet_gap_ns")});
  }
  return calls;
}

}  // namespace

Table blocking_table() {
  using Row = const BlockingCall&;
  return make_table<BlockingCall>(
      "blocking.csv",
      "call that was made while a kernel ran, and device",
      TableUse::details,
      [](const TableInputs& from) { return blocking_calls(from.rows); },
      {{"device_id", [](Row row) { return row.share->key.device; }},
       {"operation",
        "The call, as the axis of `allocation/blocking` names it.",
        [](Row row) { return row.share->key.name.at("operation"); }},
       {"relation",
        "Where the kernel ran.",
        [](Row row) { return row.share->key.name.at("relation"); }},
       {"calls", "How many were made.", [](Row row) { return row.share->n; }},
       {"blocked_share",
        "Median of how much longer than on an idle device the call takes, by what was left of the "
        "kernel; 1 at most.",
        [](Row row) { return row.share->p50; }},
       {"verdict",
        "waits_for_device: blocked_share is above 0.8; no_wait: below 0.1; partial: between.",
        [](Row row) { return verdict_of(*row.share->p50); }},
       {"launch_gap_ns",
        "Median of the longest times without a launch of another thread during the call.",
        [](Row row) { return median_of(row.gap); }},
       {"quiet_gap_ns",
        "The same in the 2 ms before the call: what the machine does by itself.",
        [](Row row) { return median_of(row.quiet); }}});
}

}  // namespace launchgap
