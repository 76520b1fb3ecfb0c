#include "harness/regression/night_view.h"

#include <algorithm>

#include "harness/core/stop.h"
#include "harness/core/utc.h"
#include "harness/regression/history_export.h"

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
  row.changed = text_of(result.changed);
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

/// Puts in what the valid nights of the same fingerprint before a night had to say of it.
void add_limits(const std::vector<KeptPoint>& points, std::size_t at, NightRow& row) {
  if (!points[at].invalid.empty()) return;
  std::vector<Night> earlier;
  for (std::size_t i = 0; i < at; ++i) {
    if (points[i].invalid.empty() && points[i].fingerprint == points[at].fingerprint)
      earlier.push_back(points[i].night);
  }
  const Metric* const known = find_metric(row.metric);
  const NightJudgement judged =
      judge_night(earlier, points[at].night, known ? known->direction : Direction::lower_is_better);
  if (judged.baseline) {
    row.low = judged.low;
    row.high = judged.high;
  }
}

class View {
 public:
  View(const History& history, const SessionFigures& session)
      : history_(history), session_(session) {}

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
      add_limits(points, i, row);
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
    std::vector<KeptPoint> points = last_points(history_, key, kMostNightsDrawn + 2 * kMostNights);
    const std::int64_t begin_s = parse_utc(session_.begin_utc).value_or(0);
    std::erase_if(points, [&](const KeptPoint& point) {
      return point.night.begin_s >= begin_s || point.session_id == session_.session_id;
    });
    return points;
  }

  static constexpr std::int64_t kNew = -1;  // a fingerprint that the history does not have

  KeptPoint as_kept(const Point& own, const std::vector<KeptPoint>& before) const {
    KeptPoint point;
    point.session_id = session_.session_id;
    point.night = own.night;
    point.invalid = own.invalid;
    point.verdict = own.verdict;
    point.fingerprint = kNew;
    for (const KeptPoint& earlier : before) {
      if (history_.fingerprints().at(earlier.fingerprint) == own.fingerprint)
        point.fingerprint = earlier.fingerprint;
    }
    return point;
  }

  const Fingerprint& keys(std::int64_t fingerprint, const Point& own) const {
    return fingerprint == kNew ? own.fingerprint : history_.fingerprints().at(fingerprint);
  }

  const History& history_;
  const SessionFigures& session_;
};

}  // namespace

NightRows night_rows(const History& history,
                     const SessionFigures& session,
                     const CheckOptions& options) {
  const Checked checked = check_against_history(history, session, options);
  const View view(history, session);
  NightRows rows;
  std::size_t drawn = 0;
  for (const Result* const result : checked.report.worst_first()) {
    rows.verdicts.push_back(verdict_row(*result));
    const auto own = std::ranges::find(checked.points, result->key, &Point::key);
    if (own == checked.points.end() || drawn == kMostDrawn) continue;
    view.add(result->key, *own, rows);
    ++drawn;
  }
  return rows;
}

}  // namespace launchgap::regression
