#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/stop.h"
#include "harness/regression/check.h"
#include "harness/regression/report_words.h"

namespace launchgap::regression {
namespace {

VerdictRow verdict_row(const Result& result) {
  VerdictRow row;
  row.key = result.key.where;
  row.metric = result.key.metric;
  row.verdict = name_of(result.verdict);
  row.reason = result.reason;
  row.value = result.value;
  row.baseline = result.baseline;
  row.change = result.change;
  if (result.interval) {
    row.change_lo = result.interval->low;
    row.change_hi = result.interval->high;
  }
  row.minimum = result.minimum;
  row.z = result.z;
  row.runs = result.runs;
  row.compared_with = result.compared_with;
  row.steadiness = name_of(result.steadiness);
  row.steadiness_reason = result.steadiness_reason;
  row.tail = tail_text(result);
  row.changed = text_of(result.changed);
  row.algorithm = algorithm_text(result);
  if (result.power) {
    row.false_alarm_rate = result.power->false_alarm_rate;
    row.detectable = result.power->detectable;
  }
  return row;
}

NightRow night_row(const SeriesKey& key, const KeptPoint& point) {
  NightRow row;
  row.key = key.where;
  row.metric = key.metric;
  row.night = point.session_id;
  row.begin_utc = utc_text(point.night.begin_s);
  row.value = point.night.value;
  row.verdict = name_of(point.verdict);
  row.invalid = point.invalid;
  return row;
}

class View {
 public:
  View(const History& history, const SessionFigures& session, const CheckOptions& options)
      : history_(history), session_(session), options_(options), accepted_(options.accepted) {
    std::ranges::copy(history.accepted(), std::back_inserter(accepted_));
  }

  /// The nights of a metric, and last the session itself as it was found.
  void add(const SeriesKey& key, const Point& own, NightRows& rows) const {
    std::vector<KeptPoint> points = nights_before(key);
    points.push_back(as_kept(own, points));
    const std::size_t begin =
        points.size() > kMostNightsDrawn ? points.size() - kMostNightsDrawn : 0;
    std::int64_t fingerprint = points[begin].fingerprint;
    for (std::size_t i = begin; i < points.size(); ++i) {
      stop_if_asked();
      NightRow row = night_row(key, points[i]);
      add_limits(points, i, own, row);
      if (points[i].fingerprint != fingerprint)
        row.changed = text_of(
            told_once(differences(keys(fingerprint, own), keys(points[i].fingerprint, own))));
      fingerprint = points[i].fingerprint;
      rows.nights.push_back(std::move(row));
    }
  }

 private:
  /// As many as are drawn and those that they were judged by; not the session itself.
  std::vector<KeptPoint> nights_before(const SeriesKey& key) const {
    std::vector<KeptPoint> points =
        last_points(history_, key, kMostNightsDrawn + 2 * rules::kMostNights);
    const std::int64_t begin_s = parse_utc(session_.begin_utc).value_or(0);
    std::erase_if(points, [&](const KeptPoint& point) {
      return point.night.begin_s >= begin_s || point.session_id == session_.session_id;
    });
    return points;
  }

  /// Puts in between which values the nights before one would have had it, by the rule of `check`.
  void add_limits(const std::vector<KeptPoint>& points,
                  std::size_t at,
                  const Point& own,
                  NightRow& row) const {
    const Metric* const known = find_metric(row.metric);
    const KeptPoint& night = points[at];
    if (!can_be_compared_with(night) || !known || !(own.night.value > 0)) return;
    const AcceptedLevel* const level = accepted_level(accepted_, own.key, night.night.begin_s);
    std::vector<rules::Night> earlier;
    for (std::size_t i = 0; i < at; ++i) {
      const bool same =
          points[i].fingerprint == night.fingerprint ||
          comparable(differences(keys(points[i].fingerprint, own), keys(night.fingerprint, own)),
                     options_.across);
      if (!same || !can_be_compared_with(points[i])) continue;
      if (level && points[i].night.begin_s < level->since_s) continue;
      earlier.push_back(points[i].night);
      if (level) level->apply_to(earlier.back());
    }
    const rules::NightJudgement judged =
        rules::judge_night(earlier, night.night, known->direction, own.least_step);
    if (!judged.baseline) return;
    row.low = judged.low;
    row.high = judged.high;
  }

  static constexpr std::int64_t kNew = -1;  // a fingerprint that the history does not have

  KeptPoint as_kept(const Point& own, const std::vector<KeptPoint>& before) const {
    KeptPoint point{own, session_.session_id, kNew};
    for (const KeptPoint& earlier : before) {
      if (history_.fingerprint(earlier.fingerprint) == own.fingerprint)
        point.fingerprint = earlier.fingerprint;
    }
    return point;
  }

  const Fingerprint& keys(std::int64_t fingerprint, const Point& own) const {
    return fingerprint == kNew ? own.fingerprint : history_.fingerprint(fingerprint);
  }

  const History& history_;
  const SessionFigures& session_;
  const CheckOptions& options_;
  std::vector<AcceptedLevel> accepted_;
};

/// A session that is in the history has the verdict that it was given then: it may have been
/// confirmed, or judged by other options.
void say_what_was_kept(const History& history,
                       const std::string& session_id,
                       Point& own,
                       Result& result) {
  for (const KeptPoint& point : last_points(history, own.key, kMostNightsDrawn)) {
    if (point.session_id != session_id || point.verdict == own.verdict) continue;
    result.reason = fmt::format("as it was checked; now it would be {}{}",
                                name_of(result.verdict),
                                result.reason.empty() ? "" : ": " + result.reason);
    result.verdict = own.verdict = point.verdict;
  }
}

std::vector<CheckAnswerRow> answers(const Report& report) {
  const std::string_view tone = report.count(Verdict::slower) > 0    ? "bad"
                                : report.count(Verdict::suspect) > 0 ? "warning"
                                                                     : "know";
  std::vector<CheckAnswerRow> rows = {{"answer", std::string(tone), answer_sentence(report)}};
  for (const Group& change : changed(report))
    rows.push_back({"change", "", change_sentence(change)});
  if (const std::string alarms = false_alarm_sentence(report); !alarms.empty())
    rows.push_back({"false-alarms", "", alarms});
  return rows;
}

}  // namespace

NightRows night_rows(const History& history,
                     const SessionFigures& session,
                     const CheckOptions& options) {
  Checked checked = check_against_history(history, session, options);
  const View view(history, session, options);
  const auto point_of = [&](const Result& result) {
    return std::ranges::find(checked.points, result.key, &Point::key);
  };
  if (history.has(session.session_id)) {
    for (Result& result : checked.report.results) {
      if (const auto own = point_of(result); own != checked.points.end())
        say_what_was_kept(history, session.session_id, *own, result);
    }
  }
  NightRows rows;
  rows.answers = answers(checked.report);
  std::size_t drawn = 0;
  for (const Result* const result : checked.report.worst_first()) {
    const auto own = point_of(*result);
    rows.verdicts.push_back(verdict_row(*result));
    if (own == checked.points.end() || drawn == kMostDrawn) continue;
    view.add(result->key, *own, rows);
    ++drawn;
  }
  return rows;
}

}  // namespace launchgap::regression
