#include "harness/regression/history.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"

namespace launchgap::regression {
namespace {

/// Three values to a digit each, since they are -1, 0 or 1.
int packed(const rules::SpreadHits& hits) {
  int number = 0;
  for (const int hit : hits) number = number * 3 + hit + 1;
  return number;
}

rules::SpreadHits unpacked(std::int64_t number) {
  rules::SpreadHits hits{};
  for (std::size_t i = hits.size(); i-- > 0; number /= 3)
    hits[i] = static_cast<int>(number % 3) - 1;
  return hits;
}

constexpr std::string_view kPointColumns =
    "s.session_id, p.fingerprint, p.begin_s, p.value, p.runs, p.within_run_cv,"
    " p.between_run_cv, p.tail, p.modes, p.p99, p.invalid, p.verdict, p.hit, p.spread_hits";
/// Version 1 has none of them, and version 2 no algorithms.
std::string_view later_columns(int version) {
  return version < 2   ? ", NULL, NULL, NULL"
         : version < 3 ? ", p.level_since_s, p.anchor, NULL"
                       : ", p.level_since_s, p.anchor, p.algorithms";
}

/// A line each.
std::string joined(const std::set<std::string>& algorithms) {
  std::string text;
  for (std::string algorithm : algorithms) {
    std::ranges::replace(algorithm, '\n', ' ');
    text += (text.empty() ? "" : "\n") + algorithm;
  }
  return text;
}

std::set<std::string> separated(std::string_view text) {
  const std::vector<std::string_view> lines = parts_of(text, "\n");
  return {lines.begin(), lines.end()};
}

/// What `read` makes of a record. Where it cannot, somebody wrote other things there.
auto read_record(const HistoryDatabase& database, const std::string& record, const auto& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error("{} is damaged: {}: {}. It stays as it is: put a copy of it back",
                database.file().string(),
                record,
                error.what());
  }
}

KeptPoint kept_point(const SqliteStatement& row) {
  KeptPoint point;
  point.session_id = row.text(0);
  point.fingerprint = row.integer(1);
  point.night.begin_s = row.integer(2);
  point.night.value = row.number(3);
  point.runs = static_cast<std::size_t>(row.integer(4));
  for (std::size_t i = 0; i < rules::kSpreadFigures; ++i)
    point.night.spread[i] = row.maybe_number(5 + static_cast<int>(i));
  point.night.p99 = row.maybe_number(9);
  point.invalid = row.text(10);
  point.verdict = parse_verdict(row.text(11));
  point.night.hit = static_cast<int>(row.integer(12));
  point.night.spread_hits = unpacked(row.integer(13));
  point.night.level_since_s = row.integer(14);  // 0 where there is none
  point.night.anchor = row.maybe_number(15);
  point.algorithms = separated(row.text(16));
  point.night.confirmed = point.verdict == Verdict::slower;
  return point;
}

SeriesKey key_of(const SqliteStatement& row, int first) {
  SeriesKey key;
  key.where.device = row.text(first);
  key.where.arm = row.text(first + 1);
  key.where.process_config = ProcessConfig(std::string(row.text(first + 2)));
  key.where.name = CaseName::parse(row.text(first + 3));
  key.metric = row.text(first + 4);
  return key;
}
constexpr std::string_view kKeyColumns =
    "series.device_id, series.arm, series.setup, series.case_name, series.metric";

SeriesKey key_of(const HistoryDatabase& database, const SqliteStatement& row, int first) {
  return read_record(database, fmt::format("the series of case '{}'", row.text(first + 3)), [&] {
    return key_of(row, first);
  });
}

}  // namespace

bool can_be_compared_with(const KeptPoint& point) {
  return point.invalid.empty() && point.night.value > 0 && std::isfinite(point.night.value);
}

History::History(const std::filesystem::path& file, Use use, int patience_ms)
    : database_(file, use, patience_ms) {}

History::~History() = default;

bool History::has(const std::string& session_id) const {
  SqliteStatement found = database_.statement("SELECT 1 FROM sessions WHERE session_id = ?");
  return found.with(session_id).next();
}

std::vector<KeptSession> History::sessions() const {
  std::vector<KeptSession> sessions;
  std::map<std::int64_t, std::size_t> points;
  SqliteStatement counts =
      database_.statement("SELECT session, count(*) FROM points GROUP BY session");
  while (counts.next()) points[counts.integer(0)] = static_cast<std::size_t>(counts.integer(1));
  SqliteStatement rows = database_.statement(
      "SELECT id, session_id, node, begin_s, added_s, invalid FROM sessions ORDER BY begin_s, id");
  while (rows.next()) {
    stop_if_asked();
    sessions.push_back({std::string(rows.text(1)),
                        std::string(rows.text(2)),
                        rows.integer(3),
                        rows.integer(4),
                        std::string(rows.text(5)),
                        points[rows.integer(0)]});
  }
  return sessions;
}

std::map<SeriesKey, std::string> History::series() const {
  std::map<SeriesKey, std::string> series;
  SqliteStatement rows =
      database_.statement(fmt::format("SELECT {}, device FROM series", kKeyColumns));
  while (rows.next()) series[key_of(database_, rows, 0)] = rows.text(5);
  return series;
}

const std::map<std::int64_t, Fingerprint>& History::fingerprints() const {
  if (!fingerprints_) read_fingerprints();
  return *fingerprints_;
}

void History::read_fingerprints() const {
  if (!fingerprints_) fingerprints_.emplace();
  SqliteStatement rows = database_.statement("SELECT id, keys FROM fingerprints");
  while (rows.next()) {
    const std::int64_t number = rows.integer(0);
    if (fingerprints_->contains(number)) continue;  // which others may hold
    (*fingerprints_)[number] = read_record(database_, fmt::format("fingerprint {}", number), [&] {
      return parse_canonical(std::string(rows.text(1)));
    });
  }
}

const Fingerprint& History::fingerprint(std::int64_t number) const {
  if (!fingerprints().contains(number)) read_fingerprints();
  const auto found = fingerprints().find(number);
  if (found == fingerprints().end())
    throw Error("{}: a point is of fingerprint {}, which is not there", file().string(), number);
  return found->second;
}

std::vector<KeptPoint> History::before(const SeriesKey& key,
                                       const std::set<std::int64_t>& fingerprints,
                                       std::int64_t begin_s,
                                       const std::function<bool(const KeptPoint&)>& enough) const {
  const auto series = find_series(key);
  if (!series) return {};
  std::vector<KeptPoint> points;
  SqliteStatement rows = database_.statement(fmt::format(
      "SELECT {}{} FROM points p JOIN sessions s ON s.id = p.session WHERE p.series = ? AND "
      "p.fingerprint = ? AND p.begin_s < ? ORDER BY p.begin_s DESC, p.session DESC",
      kPointColumns,
      later_columns(database_.version())));
  for (const std::int64_t fingerprint : fingerprints) {
    rows.with(*series, fingerprint, begin_s);
    while (rows.next()) {
      points.push_back(read_record(
          database_,
          fmt::format("{} of {} in session {}", key.metric, key.where.name.text(), rows.text(0)),
          [&] { return kept_point(rows); }));
      if (enough(points.back())) break;
    }
  }
  std::ranges::stable_sort(
      points, std::greater(), [](const KeptPoint& point) { return point.night.begin_s; });
  return points;
}

std::map<std::int64_t, std::int64_t> History::last_of_fingerprints(const SeriesKey& key,
                                                                   std::int64_t begin_s) const {
  std::map<std::int64_t, std::int64_t> last;
  const auto series = find_series(key);
  if (!series) return last;
  SqliteStatement rows = database_.statement(
      "SELECT fingerprint, max(begin_s) FROM points WHERE series = ? AND begin_s < ? AND invalid "
      "IS "
      "NULL GROUP BY fingerprint");
  rows.with(*series, begin_s);
  while (rows.next()) last[rows.integer(0)] = rows.integer(1);
  return last;
}

std::vector<AcceptedLevel> History::accepted() const {
  std::vector<AcceptedLevel> levels;
  SqliteStatement rows = database_.statement(
      "SELECT device_id, case_name, metric, since_s, accepted_s, reason FROM acceptances ORDER BY "
      "id");
  while (rows.next()) {
    levels.push_back({std::string(rows.text(0)),
                      std::string(rows.text(1)),
                      std::string(rows.text(2)),
                      rows.integer(3),
                      rows.integer(4),
                      std::string(rows.text(5))});
  }
  return levels;
}

void History::accept(const AcceptedLevel& level) {
  Transaction transaction(database_);
  database_
      .statement(
          "INSERT INTO acceptances (device_id, case_name, metric, since_s, accepted_s, "
          "reason) VALUES (?, ?, ?, ?, ?, ?)")
      .with(level.device_id,
            level.case_name,
            level.metric,
            level.since_s,
            level.accepted_s,
            level.reason)
      .run();
  transaction.commit();
}

std::vector<Rate> History::rates() const {
  std::vector<Rate> rates;
  SqliteStatement rows = database_.statement(
      fmt::format("SELECT {}, r.kind, max(r.measured_s), r.noise, r.false_alarm_rate, "
                  "r.detectable, r.erratic_rate "
                  "FROM rates r "
                  "JOIN series ON series.id = r.series GROUP BY r.series, r.kind",
                  kKeyColumns));
  while (rows.next()) {
    rates.push_back({key_of(database_, rows, 0),
                     rows.text(5) == name_of(Kind::pairs) ? Kind::pairs : Kind::history,
                     rows.integer(6),
                     rows.maybe_number(7),
                     {rows.number(8), rows.maybe_number(9), rows.maybe_number(10)}});
  }
  return rates;
}

void History::add_rates(const std::vector<Rate>& rates) {
  Transaction transaction(database_);
  series_.clear();  // what was numbered in a transaction that failed is not there
  SqliteStatement insert = database_.statement(
      "INSERT OR REPLACE INTO rates (series, kind, measured_s, noise, false_alarm_rate, "
      "detectable, erratic_rate) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (const Rate& rate : rates) {
    insert
        .with(series_number(rate.key, rate.key.where.device),
              name_of(rate.kind),
              rate.measured_s,
              rate.noise,
              rate.power.false_alarm_rate,
              rate.power.detectable,
              rate.power.erratic_rate)
        .run();
  }
  transaction.commit();
}

void History::add(const SessionFigures& session,
                  const std::vector<Point>& points,
                  const std::string& invalid) {
  const auto begin_s = parse_utc(session.begin_utc);
  if (!begin_s)
    throw Error("{} says no time at which it began, so it has no place in a history",
                session.session_id);
  Transaction transaction(database_);
  series_.clear();  // what was numbered in a transaction that failed is not there
  fingerprint_numbers_.clear();
  if (has(session.session_id)) throw UsageError("{} is in the history already", session.session_id);
  database_
      .statement(
          "INSERT INTO sessions (session_id, node, begin_s, added_s, invalid) VALUES (?, ?, "
          "?, ?, nullif(?, ''))")
      .with(session.session_id, session.node, *begin_s, std::int64_t{std::time(nullptr)}, invalid)
      .run();
  const std::int64_t number = database_.last_row();
  SqliteStatement insert = database_.statement(
      "INSERT INTO points (series, fingerprint, begin_s, session, value, runs, within_run_cv, "
      "between_run_cv, tail, modes, p99, invalid, verdict, hit, spread_hits, level_since_s, "
      "anchor, algorithms) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, nullif(?, 0), ?, "
      "nullif(?, ''))");
  for (const Point& point : points) {
    const auto name = session.device_names.find(point.key.where.device);
    const std::int64_t series = series_number(
        point.key, name == session.device_names.end() ? point.key.where.device : name->second);
    insert
        .with(series,
              fingerprint_number(point.fingerprint),
              *begin_s,
              number,
              point.night.value,
              static_cast<std::int64_t>(point.runs),
              point.night.spread[0],
              point.night.spread[1],
              point.night.spread[2],
              point.night.spread[3],
              point.night.p99,
              point.invalid,
              name_of(point.verdict),
              point.night.hit,
              packed(point.night.spread_hits),
              point.night.level_since_s,
              point.night.anchor,
              joined(point.algorithms))
        .run();
  }
  transaction.commit();
}

std::size_t History::prune(std::int64_t before_s) {
  Transaction transaction(database_);
  SqliteStatement count = database_.statement("SELECT count(*) FROM sessions WHERE begin_s < ?");
  count.with(before_s).next();
  const auto sessions = static_cast<std::size_t>(count.integer(0));
  count.run();
  database_.statement("DELETE FROM points WHERE begin_s < ?").with(before_s).run();
  database_.statement("DELETE FROM sessions WHERE begin_s < ?").with(before_s).run();
  transaction.commit();
  try {
    database_.run("VACUUM");
  } catch (const Error&) {  // the sessions are gone, and the file only is no smaller
  }
  return sessions;
}

std::optional<std::int64_t> History::find_series(const SeriesKey& key) const {
  if (series_.empty()) {
    SqliteStatement rows =
        database_.statement(fmt::format("SELECT {}, id FROM series", kKeyColumns));
    while (rows.next()) series_[key_of(database_, rows, 0)] = rows.integer(5);
  }
  const auto found = series_.find(key);
  return found == series_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t History::series_number(const SeriesKey& key, const std::string& device_name) {
  if (const auto known = find_series(key)) return *known;
  database_
      .statement(
          "INSERT INTO series (device_id, arm, setup, case_name, metric, device) VALUES (?, "
          "?, ?, ?, ?, ?) ON CONFLICT DO NOTHING")
      .with(key.where.device,
            key.where.arm,
            key.where.process_config.text(),
            key.where.name.text(),
            key.metric,
            device_name)
      .run();
  SqliteStatement row = database_.statement(
      "SELECT id FROM series WHERE device_id = ? AND arm = ? AND setup = ? AND case_name = ? AND "
      "metric = ?");
  row.with(key.where.device,
           key.where.arm,
           key.where.process_config.text(),
           key.where.name.text(),
           key.metric)
      .next();
  return series_[key] = row.integer(0);
}

std::int64_t History::fingerprint_number(const Fingerprint& fingerprint) {
  const std::string keys = canonical_text(fingerprint);
  if (const auto known = fingerprint_numbers_.find(keys); known != fingerprint_numbers_.end())
    return known->second;
  database_.statement("INSERT INTO fingerprints (keys) VALUES (?) ON CONFLICT DO NOTHING")
      .with(keys)
      .run();
  SqliteStatement row = database_.statement("SELECT id FROM fingerprints WHERE keys = ?");
  row.with(keys).next();
  fingerprints_.reset();
  return fingerprint_numbers_[keys] = row.integer(0);
}

}  // namespace launchgap::regression
