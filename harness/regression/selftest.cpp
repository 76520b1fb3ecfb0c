#include "harness/regression/selftest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "harness/core/build_info.h"
#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/core/output_file.h"
#include "harness/core/stop.h"
#include "harness/run/progress.h"
#include "harness/stats/distributions.h"

namespace launchgap::regression {
namespace {

constexpr int kMostFailuresInARow = 3;
/// A slowdown is what was asked for if it is off by at most this share of it.
constexpr double kCloseEnough = 0.1;

/// The medians of a metric, process by process.
struct Series {
  MetricFigures figures;
  std::vector<rules::ProcessSpread> spread;
};

class Test {
 public:
  Test(const SelftestRequest& request, Selftest& result)
      : request_(request), result_(result), own_(own_side()) {
    if (folder_.path().empty()) throw Error("there is no folder for temporary files: set TMPDIR");
  }

  void run() {
    compared_.a = compared_.b = own_;
    compared_.pairs = result_.pairs = request_.pairs;
    compared_.run = request_.run;
    plan_ = plan_pairs(compared_);
    measure_noise();
    compare_equals();
    if (request_.slowdown) insert_slowdowns();
  }

 private:
  /// One process of a work, with more variables; the figures are absent if it failed.
  PairedOutcome measure_one(const PairedWork& work,
                            const std::map<std::string, std::string>& environment = {}) {
    Side side = own_;
    side.environment = environment;
    PairedOutcome outcome =
        measure({.side = side,
                 .device = work.device.uuid,
                 .cases = work.a_cases,
                 .profile = request_.run.profile,
                 .seed = derive_seed(request_.run.seed.value_or(0), "selftest", processes_) >> 32,
                 .timeout_s = request_.run.timeout_s,
                 .seconds = work.seconds,
                 .folder = folder_.path() / fmt::format("process-{}", ++processes_)});
    std::error_code ignored;
    std::filesystem::remove_all(folder_.path(), ignored);
    std::filesystem::create_directory(folder_.path(), ignored);
    return outcome;
  }

  void measure_noise() {
    double seconds = 0;
    for (const PairedWork& work : plan_) seconds += work.seconds;
    Progress progress(seconds * static_cast<double>(request_.processes),
                      request_.processes * plan_.size());
    for (const PairedWork& work : plan_) {
      int failures = 0;
      for (std::size_t i = 0; i < request_.processes;) {
        progress.show(fmt::format("noise: process {} of {}, {} on {}",
                                  i + 1,
                                  request_.processes,
                                  work.process_config.text(),
                                  short_name(work.device)));
        const PairedOutcome outcome = measure_one(work);
        if (!outcome.figures) {
          if (++failures == kMostFailuresInARow)
            throw Error("{} processes in a row failed: {}", failures, outcome.problem);
          continue;
        }
        failures = 0;
        ++i;
        take(*outcome.figures);
        progress.advance(work.seconds);
        progress.run_done();
      }
    }
    for (const auto& [key, series] : series_) result_.rows.push_back(row_of(key, series));
    if (simulated_)
      result_.notes.emplace_back("SIMULATED: measured on fake CUDA libraries, which are no GPU");
  }

  void take(const SessionFigures& figures) {
    simulated_ = simulated_ || figures.simulated;
    device_names_.insert(figures.device_names.begin(), figures.device_names.end());
    for (const MetricFigures& metric : figures.metrics) {
      if (!metric.invalid.empty() || metric.runs.size() != 1) continue;
      Series& series = series_[metric.key];
      const RunFigures& run = metric.runs.front();
      series.figures.key = metric.key;
      series.figures.runs.push_back(run);
      series.spread.push_back({run.median, run.cv, run.tail, metric.modes});
      double& tick = series.figures.tick;
      if (metric.tick > 0 && (tick == 0 || metric.tick < tick)) tick = metric.tick;
    }
  }

  SelftestRow row_of(const SeriesKey& key, const Series& series) const {
    SelftestRow row;
    row.key = key;
    if (const auto name = device_names_.find(key.where.device); name != device_names_.end())
      row.device_name = name->second;
    row.processes = series.figures.runs.size();
    row.value = series.figures.value();
    std::vector<double> logs;
    for (const RunFigures& run : series.figures.runs) {
      if (run.median > 0) logs.push_back(std::log(run.median));
    }
    if (logs.size() == row.processes) {
      row.noise = stats::standard_deviation(logs);
      row.lag1 = stats::lag1_autocorrelation(logs);
    }
    row.watched = why_only_watched(series.figures).value_or("");
    if (!row.watched.empty() || logs.size() < 3) return row;
    const std::uint64_t seed = request_.run.seed.value_or(0);
    const double sign = sign_of_worse(series.figures);
    row.minimum = least_change(series.figures, rules::kPairedShare);
    const rules::PairedRule rule(request_.pairs, sign, row.minimum);
    const MeasuredPower power = resample(logs, rule, request_.pairs, sign, seed);
    row.false_alarm_rate = power.false_alarm_rate;
    row.detectable = power.detectable;
    row.erratic_rate = resample_erratic(series.spread, request_.pairs, seed);
    return row;
  }

  SelftestRow* row_at(const SeriesKey& key) {
    const auto found = std::ranges::find(result_.rows, key, &SelftestRow::key);
    return found == result_.rows.end() ? nullptr : &*found;
  }

  void compare_equals() {
    for (std::size_t i = 0; i < request_.noop; ++i) {
      compared_.progress = fmt::format("comparison {} of {} of equals", i + 1, request_.noop);
      compared_.run.seed = derive_seed(request_.run.seed.value_or(0), "noop", i);
      for (const Result& found : compare(compared_, plan_).results) {
        SelftestRow* const row = row_at(found.key);
        if (!row || found.verdict == Verdict::watch || found.verdict == Verdict::invalid) continue;
        ++row->comparisons;
        row->alarms += found.verdict == Verdict::slower;
        row->erratic += found.steadiness == Steadiness::erratic;
        row->alarm_interval = stats::binomial_interval(row->alarms, row->comparisons);
      }
    }
  }

  void insert_slowdowns() {
    for (SelftestRow& row : result_.rows) {
      const Metric* const known = find_metric(row.key.metric);
      if (!row.watched.empty() || !known || known->source != "host_clock") continue;
      row.slowdowns = Slowdowns{.asked = *request_.slowdown};
      slow_down(row, *row.slowdowns);
    }
  }

  /// The work that has a row's case, with no other case in it.
  PairedWork work_of(const SelftestRow& row) const {
    const std::string name = row.key.where.name.text();
    for (const PairedWork& work : plan_) {
      if (work.device.uuid != row.key.where.device) continue;
      if (std::ranges::find(work.a_cases, name) == work.a_cases.end()) continue;
      PairedWork alone = work;
      alone.a_cases = alone.b_cases = {name};
      return alone;
    }
    throw Error("there is no process for " + name);
  }

  static std::map<std::string, std::string> delayed_by(double ns) {
    return {{"LAUNCHGAP_DELAY_NS", fmt::format("{:.3f}", ns)}};
  }

  /// By how much a metric grows with each nanosecond of the delay: 0 where no delayed call is
  /// within what it times, less than 1 where it is divided by more operations than calls.
  std::optional<double> growth(const SelftestRow& row, const PairedWork& work, double delay_ns) {
    const PairedOutcome outcome = measure_one(work, delayed_by(delay_ns));
    if (!outcome.figures || !outcome.figures->delay_ns) return std::nullopt;
    const std::optional<double> median = median_of(outcome, row.key);
    if (!median) return std::nullopt;
    return (*median - row.value) / *outcome.figures->delay_ns;
  }

  /// A little of it may be what a pause does to caches, or noise, and a delay that makes up for it
  /// would take for ever: it is believed where a longer delay makes as much of it.
  std::optional<double> sure_growth(const SelftestRow& row, const PairedWork& work) {
    constexpr double kLeastDelayNs = 2000, kDoubtful = 0.05, kTimesAsLong = 8;
    const double delay_ns = std::max(kLeastDelayNs, 3 * row.value);
    const std::optional<double> found = growth(row, work, delay_ns);
    if (!found || *found < kLeastGrowth || *found >= kDoubtful) return found;
    const std::optional<double> again = growth(row, work, kTimesAsLong * delay_ns);
    return again && *again < *found / 2 ? 0 : again;
  }

  static std::optional<double> median_of(const PairedOutcome& outcome, const SeriesKey& key) {
    if (!outcome.figures) return std::nullopt;
    for (const MetricFigures& metric : outcome.figures->metrics) {
      if (metric.key == key && metric.runs.size() == 1) return metric.runs.front().median;
    }
    return std::nullopt;
  }

  /// The slowdown that a delay makes, as a share: the median of pairs of processes, of which every
  /// other one begins with the delay. A few pairs are enough if they agree, to a share
  /// `kCloseEnough` of what is asked for.
  std::optional<double> effect(const SelftestRow& row,
                               const PairedWork& work,
                               double asked,
                               double delay_ns) {
    constexpr std::size_t kFewestPairs = 4;
    constexpr int kMostPairs = 12;
    const double agreed = kCloseEnough * asked;
    std::vector<double> ratios;
    for (int i = 0; i < kMostPairs; ++i) {
      std::optional<double> without, with;
      for (const bool delayed : {i % 2 == 1, i % 2 == 0}) {
        const PairedOutcome outcome =
            delayed ? measure_one(work, delayed_by(delay_ns)) : measure_one(work);
        (delayed ? with : without) = median_of(outcome, row.key);
      }
      if (without && with && *without > 0) ratios.push_back(*with / *without);
      if (ratios.size() < kFewestPairs) continue;
      const auto [least, most] = std::ranges::minmax(ratios);
      if (most - least <= agreed) break;
    }
    const auto middle = stats::median(std::move(ratios));
    return middle ? std::optional(*middle - 1) : std::nullopt;
  }

  /// The delay that makes the slowdown that is asked for, beginning at a guess. A slowdown is not
  /// what a long delay would let one expect: a processor does a part of a short one beside the
  /// call, and two threads may fall out of step by it.
  double delay_for(const SelftestRow& row, const PairedWork& work, double asked, double delay_ns) {
    constexpr int kRounds = 4;
    constexpr double kMostCorrection = 2;
    double closest_ns = delay_ns, least_off = std::numeric_limits<double>::infinity();
    for (int round = 0; round < kRounds; ++round) {
      const std::optional<double> seen = effect(row, work, asked, delay_ns);
      if (!seen) break;
      const double correction = *seen > 0 ? asked / *seen : kMostCorrection;
      delay_ns *= std::clamp(correction, 1 / kMostCorrection, kMostCorrection);
      const double off = std::abs(*seen / asked - 1);
      if (off < least_off) {
        least_off = off;
        closest_ns = delay_ns;
      }
      if (off < kCloseEnough) break;
    }
    return closest_ns;
  }

  void slow_down(const SelftestRow& row, Slowdowns& slowdowns) {
    const PairedWork work = work_of(row);
    const std::optional<double> per_ns = sure_growth(row, work);
    if (!per_ns || *per_ns < kLeastGrowth) {
      slowdowns.problem = per_ns ? "no call that is delayed is within what it times"
                                 : "a process with a delay measured nothing";
      return;
    }
    const double delay_ns =
        delay_for(row, work, slowdowns.asked, slowdowns.asked * row.value / std::min(1.0, *per_ns));
    CompareRequest request = compared_;
    request.b.environment = delayed_by(delay_ns);
    double inserted = 0, changes = 0;
    std::size_t delayed = 0;
    request.heard = [&](char, const SessionFigures& figures) {
      if (!figures.delay_ns) return;
      inserted += *figures.delay_ns;
      slowdowns.delay_ns = inserted / static_cast<double>(++delayed);
      if (!figures.delay_problem.empty()) slowdowns.problem = figures.delay_problem;
    };
    for (std::size_t i = 0; i < request_.tries; ++i) {
      request.progress = fmt::format("{}, {:.2g} % slower, {} of {}",
                                     row.key.metric,
                                     100 * slowdowns.asked,
                                     i + 1,
                                     request_.tries);
      request.run.seed = derive_seed(request_.run.seed.value_or(0), "slowdown", i);
      for (const Result& found : compare(request, {work}).results) {
        if (found.key != row.key || !found.change) continue;
        ++slowdowns.tries;
        slowdowns.found += found.verdict == Verdict::slower;
        changes += *found.change;
        slowdowns.change = changes / static_cast<double>(slowdowns.tries);
      }
    }
  }

  static constexpr double kLeastGrowth = 0.001;

  const SelftestRequest& request_;
  Selftest& result_;
  Side own_;
  CompareRequest compared_;
  std::vector<PairedWork> plan_;
  TemporaryFolder folder_;
  std::size_t processes_ = 0;
  std::map<SeriesKey, Series> series_;
  std::map<std::string, std::string> device_names_;
  bool simulated_ = false;
};

}  // namespace

std::optional<MeasuredPower> SelftestRow::power() const {
  if (!false_alarm_rate) return std::nullopt;
  return MeasuredPower{*false_alarm_rate, detectable, erratic_rate};
}

void selftest(const SelftestRequest& request, Selftest& result) {
  Test(request, result).run();
}

}  // namespace launchgap::regression
