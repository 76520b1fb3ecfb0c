// A history: what each session said of each metric, night after night, and what was said of it.
// Sessions are added and, but for `prune`, never changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/regression/accepted_levels.h"
#include "harness/regression/fingerprint.h"
#include "harness/regression/history_database.h"
#include "harness/regression/session_figures.h"
#include "harness/rules/nights.h"

namespace launchgap::regression {

/// What is kept of a metric in a session.
struct Point {
  SeriesKey key;
  rules::Night night;
  std::size_t runs = 0;
  std::string invalid;  // why it does not count; else empty
  Verdict verdict = Verdict::same;
  Fingerprint fingerprint;
  std::set<std::string> algorithms;
  double least_step = 0;  // the smallest change that counts beside 3 %; is not kept
};

/// A point that was kept.
struct KeptPoint {
  std::string session_id;
  std::int64_t fingerprint = 0;  // its number
  rules::Night night;
  std::size_t runs = 0;
  std::string invalid;
  Verdict verdict = Verdict::same;
  std::set<std::string> algorithms;
};

/// Whether it is valid and has a ratio to others.
bool can_be_compared_with(const KeptPoint& point);

struct KeptSession {
  std::string session_id, node;
  std::int64_t begin_s = 0, added_s = 0;
  std::string invalid;
  std::size_t points = 0;
};

/// What the self-test found of a metric: see selftest.h.
struct Rate {
  SeriesKey key;
  Kind kind = Kind::history;  // of which rule
  std::int64_t measured_s = 0;
  std::optional<double> noise;  // standard deviation of logarithms, of processes or of nights
  MeasuredPower power;
};

class History {
 public:
  using Use = HistoryDatabase::Use;

  /// See HistoryDatabase.
  History(const std::filesystem::path& file, Use use, int patience_ms = kPatienceMs);
  ~History();

  const std::filesystem::path& file() const { return database_.file(); }
  bool has(const std::string& session_id) const;
  /// In order of time.
  std::vector<KeptSession> sessions() const;
  /// All series, by key.
  std::map<SeriesKey, std::string> series() const;  // with the device's name

  /// All fingerprints by number, as they were when first asked for.
  const std::map<std::int64_t, Fingerprint>& fingerprints() const;
  /// One of them, also if another process has added it since. Throws Error that names file and
  /// number if there is none.
  const Fingerprint& fingerprint(std::int64_t number) const;

  /// The points of a series with these fingerprints that began before a time, latest first, until
  /// `enough` says so of one.
  std::vector<KeptPoint> before(const SeriesKey& key,
                                const std::set<std::int64_t>& fingerprints,
                                std::int64_t begin_s,
                                const std::function<bool(const KeptPoint&)>& enough) const;
  /// When the last valid point of each of the series' fingerprints began, before a time.
  std::map<std::int64_t, std::int64_t> last_of_fingerprints(const SeriesKey& key,
                                                            std::int64_t begin_s) const;

  /// Levels that people have accepted.
  std::vector<AcceptedLevel> accepted() const;
  void accept(const AcceptedLevel& level);

  /// The latest of each series and kind.
  std::vector<Rate> rates() const;
  void add_rates(const std::vector<Rate>& rates);

  /// Adds a session and its points, all or nothing. `invalid`: why it is so as a whole, or empty.
  /// Throws Error, and UsageError if it is in already.
  void add(const SessionFigures& session,
           const std::vector<Point>& points,
           const std::string& invalid);
  /// Removes sessions that began before a time; returns how many.
  std::size_t prune(std::int64_t before_s);

 private:
  std::optional<std::int64_t> find_series(const SeriesKey& key) const;
  std::int64_t series_number(const SeriesKey& key, const std::string& device_name);
  std::int64_t fingerprint_number(const Fingerprint& fingerprint);
  void read_fingerprints() const;

  HistoryDatabase database_;
  mutable std::map<SeriesKey, std::int64_t> series_;
  mutable std::optional<std::map<std::int64_t, Fingerprint>> fingerprints_;
  std::map<std::string, std::int64_t> fingerprint_numbers_;
};

}  // namespace launchgap::regression
