// A history: what each session said of each metric, night after night, and what was said of it.
// Sessions are added and, but for `prune`, never changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/import/sqlite_statement.h"
#include "harness/regression/fingerprint.h"
#include "harness/regression/session_figures.h"
#include "harness/rules/nights.h"

struct sqlite3;

namespace launchgap::regression {

inline constexpr int kPatienceMs = 60'000;

/// The SQLite file behind a history: opened with care, and every failure says what to do.
class HistoryDatabase {
 public:
  enum class Use { read, write };

  /// Opens a history; to write, makes one where there is no file, and brings one that an older
  /// launchgap made up to date. A file that is there and is no
  /// history (another program's, empty, damaged, cut short) is left as it is. Throws UsageError if
  /// there is none to read, and Error that says what is wrong with it and what to do.
  /// Who writes to it is waited for, `patience_ms` at most.
  HistoryDatabase(const std::filesystem::path& file, Use use, int patience_ms = kPatienceMs);
  HistoryDatabase(const HistoryDatabase&) = delete;
  HistoryDatabase& operator=(const HistoryDatabase&) = delete;
  ~HistoryDatabase();

  /// What it reads or writes throws Error that names the file.
  SqliteStatement statement(std::string_view query) const;
  void run(std::string_view query) const { statement(query).run(); }
  std::int64_t last_row() const;
  const std::filesystem::path& file() const { return file_; }
  /// Of a history that is only read, 1 if it keeps neither levels nor anchors, 2 if it keeps no
  /// algorithms; else 3.
  int version() const { return version_; }

 private:
  std::int64_t pragma(std::string_view name) const;
  void open(Use use);
  void update();
  void connect(int flags);
  void create();

  std::filesystem::path file_;
  sqlite3* database_ = nullptr;
  int version_ = 0;
  int patience_ms_;
};

/// All of it, or nothing: what was not committed is taken back. Waits for other writers for up to a
/// minute.
class Transaction {
 public:
  explicit Transaction(const HistoryDatabase& database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  /// Throws Error if it cannot be kept: then the file is as it was before.
  void commit();

 private:
  const HistoryDatabase& database_;
  bool open_ = true;
};

/// A level that a human has accepted: from then on a metric is compared with sessions since. Names
/// may have `*` and `?`, as file names in a shell.
struct AcceptedLevel {
  std::string device_id = "*", case_name = "*", metric = "*";
  std::int64_t since_s = 0;     // sessions that began earlier are no longer compared with
  std::int64_t accepted_s = 0;  // what was said of sessions that began until then does not count
  std::string reason;

  bool covers(const SeriesKey& key) const;
  /// Takes back what was said of a session that began before this was accepted.
  void apply_to(rules::Night& night) const;
};

/// The latest of those that cover it and had begun by then; null if none.
const AcceptedLevel* accepted_level(std::span<const AcceptedLevel> levels,
                                    const SeriesKey& key,
                                    std::int64_t begin_s);

/// Reads a text file, to be kept with the project that gates: a level per line,
/// `DEVICE CASE METRIC SINCE ACCEPTED REASON…`, dates as 2026-11-22 or 2026-11-22T03:00:00Z; what
/// follows a `#` is for people. Throws Error that names the line.
std::vector<AcceptedLevel> read_accepted_levels(const std::filesystem::path& file);

enum class Day { begin, end };

/// A time, or a day's begin or end. Throws UsageError.
std::int64_t parse_time(const std::string& text, Day day = Day::begin);

/// What a session says of a metric.
struct MetricOfSession {
  rules::Night night;
  std::size_t runs = 0;
  std::string invalid;  // why it does not count; else empty
  Verdict verdict = Verdict::same;
  Algorithms algorithms;
};

/// What is kept of a metric in a session.
struct Point : MetricOfSession {
  SeriesKey key;
  Fingerprint fingerprint;
  double least_step = 0;  // the smallest change that counts beside 3 %; is not kept
};

/// A point that was kept.
struct KeptPoint : MetricOfSession {
  std::string session_id;
  std::int64_t fingerprint = 0;  // its number
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

// --- A history as rows: for people, and for programs that look for change points ---

/// The last points of a series, in order of time.
std::vector<KeptPoint> last_points(const History& history, const SeriesKey& key, std::size_t count);

/// One row per session and metric, by series and in order of time, as RFC 4180: session_id, node,
/// begin_utc, device_id, device_name, arm, process_config, case, metric, unit, value, runs,
/// within_run_cv, between_run_cv, tail, modes, p99, verdict, invalid, fingerprint. Throws
/// WriteError.
void export_csv(const History& history, const std::filesystem::path& file);

}  // namespace launchgap::regression
