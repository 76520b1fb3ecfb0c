#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/plan.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/regression/check.h"
#include "harness/rules/ratio.h"
#include "harness/stats/stats.h"

namespace launchgap::regression {
namespace {

rules::Night night_of(const MetricFigures& figures, std::int64_t begin_s) {
  rules::Night night;
  night.begin_s = begin_s;
  night.value = figures.value();
  night.p99 = figures.p99;
  night.spread = {figures.within_run_cv(), figures.between_run_cv(), figures.tail(), std::nullopt};
  if (figures.modes)
    night.spread[static_cast<std::size_t>(rules::SpreadFigure::modes)] = *figures.modes;
  return night;
}

class Check {
 public:
  Check(const History& history, const SessionFigures& session, const CheckOptions& options)
      : history_(history),
        session_(session),
        options_(options),
        begin_s_(parse_utc(session.begin_utc).value_or(0)),
        accepted_(options.accepted) {
    std::ranges::copy(history.accepted(), std::back_inserter(accepted_));
    for (Rate& rate : history.rates()) {
      if (rate.kind == Kind::history) power_[rate.key] = rate.power;
    }
  }

  Checked check() {
    Report& report = checked_.report;
    report.kind = Kind::history;
    report.strictness = options_.strictness;
    report.base = history_.file().string();
    report.subject = session_.session_id;
    report.session_id = session_.session_id;
    report.begin_utc = session_.begin_utc;
    for (const MetricFigures& figures : session_.metrics) {
      stop_if_asked();
      judge(figures);
    }
    report.invalid = invalid_as_a_whole(session_, report.results);
    if (report.invalid.empty()) add_missing();
    if (history_.has(session_.session_id))
      report.notes.push_back(
          "It is in the history already, and was compared with those before it.");
    note_algorithms(report);
    note_unmoved();
    for (const std::string& key : options_.across.asked()) note_unknown(key);
    std::ranges::sort(report.results, {}, &Result::key);
    return std::move(checked_);
  }

 private:
  void judge(const MetricFigures& figures) {
    Result result = measured_result(session_, figures);
    Point point;
    point.key = figures.key;
    point.fingerprint = figures.fingerprint;
    point.runs = figures.runs.size();
    point.algorithms = figures.algorithms;
    if (!figures.runs.empty()) point.night = night_of(figures, begin_s_);
    if (is_open(result)) {
      point.least_step = least_change(figures, 0) * point.night.value;
      compare(figures, point.least_step, point.night, result);
    }
    if (result.verdict == Verdict::invalid) point.invalid = result.reason;
    point.verdict = result.verdict;
    if (!figures.runs.empty()) checked_.points.push_back(std::move(point));
    checked_.report.results.push_back(std::move(result));
  }

  /// Puts what was found into the result, and the hits into the night.
  void compare(const MetricFigures& figures,
               double least_step,
               rules::Night& night,
               Result& result) {
    const std::set<std::int64_t>& comparable = comparable_with(figures.fingerprint);
    const std::vector<KeptPoint> before = points_before(figures.key, comparable);
    std::vector<rules::Night> earlier;
    for (const KeptPoint& point : before) earlier.push_back(point.night);
    const rules::NightJudgement judged =
        rules::judge_night(earlier, night, metric(figures.key.metric).direction, least_step);
    rules::remember(judged, night);
    static_cast<rules::Judgement&>(result) = judged;
    result.hits = judged.hits_in_a_row;
    const bool is_tail =
        judged.spread_hits[static_cast<std::size_t>(rules::SpreadFigure::tail)] > 0 &&
        metric(figures.key.metric).direction == Direction::lower_is_better;
    // p99/p50 grows where the median alone falls, too.
    if (is_tail && figures.p99 && judged.baseline_p99.value_or(0) > 0 &&
        *figures.p99 > *judged.baseline_p99)
      result.tail = *figures.p99 / *judged.baseline_p99;
    if (judged.baseline)
      result.minimum = std::max(rules::kNightLeastChange, least_step / *judged.baseline);
    if (const auto power = power_.find(figures.key); power != power_.end())
      result.power = power->second;
    if (judged.verdict == Verdict::no_baseline) {
      compare_with_last(figures, earlier, result);
    } else if (judged.since_s) {
      const auto first = static_cast<std::size_t>(
          std::ranges::lower_bound(earlier, *judged.since_s, {}, &rules::Night::begin_s) -
          earlier.begin());
      result.changed = changed_with(first, before, figures.fingerprint);
      result.algorithm = algorithm_with(first, before, figures.algorithms, judged.hit != 0);
    }
  }

  /// Numbers of the fingerprints from which only keys differ that may.
  const std::set<std::int64_t>& comparable_with(const Fingerprint& fingerprint) {
    const auto [entry, added] = comparable_.try_emplace(canonical_text(fingerprint));
    if (added) {
      for (const auto& [number, known] : history_.fingerprints()) {
        if (comparable(differences(known, fingerprint), options_.across))
          entry->second.insert(number);
      }
    }
    return entry->second;
  }

  /// What comparable sessions before said of a metric: valid ones in order of time, as what people
  /// accepted leaves them.
  std::vector<KeptPoint> points_before(const SeriesKey& key,
                                       const std::set<std::int64_t>& fingerprints) const {
    const AcceptedLevel* const level = accepted_level(accepted_, key, begin_s_);
    std::size_t counted = 0;
    std::int64_t fingerprint = -1;
    std::optional<int> row;  // of hits, which are not compared with; 0 behind its start
    const auto enough = [&](const KeptPoint& point) {
      if (point.fingerprint != fingerprint) {
        counted = 0;
        row.reset();
      }
      fingerprint = point.fingerprint;
      if (!can_be_compared_with(point)) return false;
      row = point.night.hit == row.value_or(point.night.hit) ? point.night.hit : 0;
      counted += *row == 0 && !point.night.confirmed;
      return counted >= rules::kMostNights || (level && point.night.begin_s < level->since_s);
    };
    std::vector<KeptPoint> before = history_.before(key, fingerprints, begin_s_, enough);
    std::erase_if(before, [&](const KeptPoint& point) {
      return !can_be_compared_with(point) || (level && point.night.begin_s < level->since_s);
    });
    for (KeptPoint& point : before) {
      if (level) level->apply_to(point.night);
    }
    std::ranges::reverse(before);
    return before;
  }

  /// Which keys changed with the session with which it became what it is now: one before, or this
  /// one. What changed earlier or later explains nothing.
  std::vector<KeyChange> changed_with(std::size_t first,
                                      const std::vector<KeptPoint>& before,
                                      const Fingerprint& now) const {
    if (first == 0) return {};
    const auto fingerprint = [&](std::size_t i) -> const Fingerprint& {
      return i < before.size() ? history_.fingerprint(before[i].fingerprint) : now;
    };
    return told_once(differences(fingerprint(first - 1), fingerprint(first)));
  }

  /// The algorithm that came with that session; of what is no slower and no faster any that is
  /// another than usual.
  static std::optional<KeyChange> algorithm_with(std::size_t first,
                                                 const std::vector<KeptPoint>& before,
                                                 const Algorithms& now,
                                                 bool must_coincide) {
    const Algorithms& own = first < before.size() ? before[first].algorithms : now;
    EarlierAlgorithms usual, last;
    for (std::size_t i = first; i-- > 0;) {
      if (before[i].night.hit > 0) continue;
      usual.add(before[i].algorithms);
      if (last.empty()) last.add(before[i].algorithms);
    }
    if (must_coincide && !last.change_to(own)) return std::nullopt;
    return usual.change_to(own);
  }

  /// Where a series begins: which keys of the fingerprint changed, and how far it moved with them.
  void compare_with_last(const MetricFigures& figures,
                         const std::vector<rules::Night>& same_fingerprint,
                         Result& result) const {
    std::optional<std::int64_t> last;
    std::int64_t last_s = 0;
    for (const auto& [fingerprint, began_s] :
         history_.last_of_fingerprints(figures.key, begin_s_)) {
      const bool same = comparable_.at(canonical_text(figures.fingerprint)).contains(fingerprint);
      if (same || (last && began_s <= last_s)) continue;
      last = fingerprint;
      last_s = began_s;
    }
    // A level that was accepted since begins the series, and not what changed before.
    const AcceptedLevel* const level = accepted_level(accepted_, figures.key, begin_s_);
    if (!last || (level && last_s < level->since_s)) return;
    result.changed = told_once(differences(history_.fingerprint(*last), figures.fingerprint));
    std::vector<double> before, now = {figures.value()};
    EarlierAlgorithms algorithms;
    const auto take = [&](const KeptPoint& point) {
      if (can_be_compared_with(point) && !point.night.confirmed) {
        before.push_back(point.night.value);
        algorithms.add(point.algorithms);
      }
      return before.size() >= rules::kMostNights;
    };
    history_.before(figures.key, {*last}, begin_s_, take);
    result.algorithm = algorithms.change_to(figures.algorithms);
    for (const rules::Night& night : same_fingerprint) {
      if (night.begin_s > last_s) now.push_back(night.value);
    }
    if (now.size() > 1)
      result.reason += fmt::format("; the change is that of {} sessions together", now.size());
    constexpr double kTailOf99 = 0.005;
    const auto found = rules::pooled_ratio(now, before, kTailOf99);
    if (!found) return;
    result.baseline = stats::median(before);
    result.change = found->value - 1;
    if (found->interval) result.interval = {found->interval->low - 1, found->interval->high - 1};
  }

  /// What the device's session before had, and this one lacks.
  void add_missing() {
    using Configuration = std::tuple<std::string, std::string, ProcessConfig>;
    std::map<Configuration, std::vector<SeriesKey>> measured;
    std::set<SeriesKey> present;
    std::set<CaseKey> failed;  // which is said already
    for (const MetricFigures& figures : session_.metrics) {
      const CaseKey& where = figures.key.where;
      present.insert(figures.key);
      if (figures.key.metric.empty()) {
        failed.insert(where);
      } else {
        measured[{where.device, where.arm, where.process_config}].push_back(figures.key);
      }
    }
    const auto last_began = [&](const SeriesKey& key) {
      std::int64_t last = 0;
      for (const auto& [fingerprint, began_s] : history_.last_of_fingerprints(key, begin_s_))
        last = std::max(last, began_s);
      return last;
    };
    // When the configuration was measured last, by whichever metric.
    std::map<Configuration, std::int64_t> last_s;
    const auto last_measured = [&](const Configuration& configuration) {
      const auto [entry, added] = last_s.try_emplace(configuration);
      for (const SeriesKey& key : added ? measured.at(configuration) : std::vector<SeriesKey>())
        entry->second = std::max(entry->second, last_began(key));
      return entry->second;
    };
    for (const auto& [key, device_name] : history_.series()) {
      const auto beside =
          measured.find({key.where.device, key.where.arm, key.where.process_config});
      if (beside == measured.end() || present.contains(key) || failed.contains(key.where) ||
          key.where.arm != name_of(Arm::plain))
        continue;
      const std::int64_t last = last_began(key);
      if (last == 0 || last < last_measured(beside->first)) continue;
      Result missing;
      missing.key = key;
      missing.node = session_.node_of(key.where.device);
      missing.device_name = device_name;
      missing.verdict = Verdict::invalid;
      missing.reason = fmt::format("not measured, and the session of {} has it", utc_text(last));
      checked_.report.results.push_back(std::move(missing));
    }
  }

  /// Of what changed with this session, how many metrics did not.
  void note_unmoved() {
    Report& report = checked_.report;
    std::map<std::string, std::size_t> unmoved;  // by what changed
    for (const Result& result : report.results) {
      if (result.verdict == Verdict::same && result.hits == 0 && !result.changed.empty())
        ++unmoved[text_of(result.changed)];
    }
    for (const auto& [changed, count] : unmoved)
      report.notes.push_back(
          fmt::format("{}: {} stayed the same.", printable(changed), counted(count, "metric")));
  }

  void note_unknown(const std::string& key) {
    const auto has = [&](const Fingerprint& fingerprint) { return fingerprint.contains(key); };
    const bool known = std::ranges::any_of(session_.metrics, has, &MetricFigures::fingerprint) ||
                       std::ranges::any_of(history_.fingerprints(),
                                           [&](const auto& one) { return has(one.second); });
    if (!known)
      checked_.report.notes.push_back(
          fmt::format("--across {}: no fingerprint has this key.", key));
  }

  const History& history_;
  const SessionFigures& session_;
  const CheckOptions& options_;
  std::int64_t begin_s_;
  std::vector<AcceptedLevel> accepted_;
  std::map<SeriesKey, MeasuredPower> power_;
  std::map<std::string, std::set<std::int64_t>> comparable_;  // by canonical text
  Checked checked_;
};

}  // namespace

Checked check_against_history(const History& history,
                              const SessionFigures& session,
                              const CheckOptions& options) {
  return Check(history, session, options).check();
}

}  // namespace launchgap::regression
