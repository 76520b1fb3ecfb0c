#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <sqlite3.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/regression/history.h"

namespace launchgap::regression {
namespace {

namespace fs = std::filesystem;

constexpr int kApplicationId = 0x4c676170;  // "Lgap"
constexpr int kSchemaVersion = 3;

/// Sessions, what each says of each metric, and what people and the self-test said. Nothing of it
/// is changed but by `prune`. Points are found by series, fingerprint and time.
constexpr std::string_view kTables[] = {
    "CREATE TABLE sessions (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE,"
    " node TEXT NOT NULL, begin_s INTEGER NOT NULL, added_s INTEGER NOT NULL, invalid TEXT)",
    "CREATE TABLE fingerprints (id INTEGER PRIMARY KEY, keys TEXT NOT NULL UNIQUE)",
    "CREATE TABLE series (id INTEGER PRIMARY KEY, device_id TEXT NOT NULL, arm TEXT NOT NULL,"
    " setup TEXT NOT NULL, case_name TEXT NOT NULL, metric TEXT NOT NULL, device TEXT NOT NULL,"
    " UNIQUE (device_id, arm, setup, case_name, metric))",
    "CREATE TABLE points (series INTEGER NOT NULL REFERENCES series,"
    " fingerprint INTEGER NOT NULL REFERENCES fingerprints, begin_s INTEGER NOT NULL,"
    " session INTEGER NOT NULL REFERENCES sessions, value REAL, runs INTEGER NOT NULL,"
    " within_run_cv REAL, between_run_cv REAL, tail REAL, modes REAL, p99 REAL, invalid TEXT,"
    " verdict TEXT NOT NULL, hit INTEGER NOT NULL, spread_hits INTEGER NOT NULL,"
    " level_since_s INTEGER, anchor REAL, algorithms TEXT,"
    " PRIMARY KEY (series, fingerprint, begin_s, session)) WITHOUT ROWID",
    "CREATE TABLE acceptances (id INTEGER PRIMARY KEY, device_id TEXT NOT NULL,"
    " case_name TEXT NOT NULL, metric TEXT NOT NULL, since_s INTEGER NOT NULL,"
    " accepted_s INTEGER NOT NULL, reason TEXT NOT NULL)",
    "CREATE TABLE rates (series INTEGER NOT NULL REFERENCES series, kind TEXT NOT NULL,"
    " measured_s INTEGER NOT NULL, noise REAL, false_alarm_rate REAL NOT NULL, detectable REAL, "
    "erratic_rate REAL,"
    " PRIMARY KEY (series, kind, measured_s)) WITHOUT ROWID",
};

/// What each version has beyond the one before.
struct Change {
  int version;
  std::string_view statement;
};
constexpr Change kChanges[] = {
    {2, "ALTER TABLE points ADD COLUMN level_since_s INTEGER"},
    {2, "ALTER TABLE points ADD COLUMN anchor REAL"},
    {3, "ALTER TABLE points ADD COLUMN algorithms TEXT"},
};

/// "it has 4096 of 8192 bytes"; empty unless the file is shorter than its header says. Only for the
/// words: SQLite finds out by itself, once it has taken back what an interrupted writer left.
std::string what_is_missing(const fs::path& file) {
  std::array<unsigned char, 32> header{};
  std::ifstream in(file, std::ios::binary);
  in.read(reinterpret_cast<char*>(header.data()), header.size());
  std::error_code failed;
  const std::uint64_t length = fs::file_size(file, failed);
  if (!in || failed) return "";
  std::uint64_t page = header[16] * 256u + header[17];
  if (page == 1) page = 65536;
  std::uint64_t pages = 0;
  for (int i = 28; i < 32; ++i) pages = pages * 256 + header[static_cast<std::size_t>(i)];
  if (length >= page * pages) return "";
  return fmt::format("cut short: it has {} of {} bytes", length, page * pages);
}

[[noreturn]] void refuse(sqlite3* database, const fs::path& file, int code) {
  const char* const words = sqlite3_errmsg(database);
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
      throw Error("{} is no history: it is not a SQLite file. It stays as it is", file.string());
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT: {
      const std::string missing = what_is_missing(file);
      throw Error(
          "{} is {}. It stays as it is: put a copy of it back, or save what can "
          "be read with `sqlite3 {} .recover`",
          file.string(),
          missing.empty() ? fmt::format("damaged ({})", words) : missing,
          file.string());
    }
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(
          "{} is locked: another program is writing to it. Nothing was changed; try again when it "
          "is "
          "done",
          file.string());
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      throw Error(
          "{} cannot be written ({}): it, and the folder that it is in, must be "
          "writable. Nothing was changed; --no-add only reads it",
          file.string(),
          words);
    case SQLITE_FULL:
      throw Error("{}: the disk is full. Nothing was added and nothing is lost", file.string());
    case SQLITE_IOERR:
      throw Error("{} cannot be read or written ({}; {}). Nothing was changed",
                  file.string(),
                  words,
                  std::strerror(sqlite3_system_errno(database)));
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    default:
      throw Error("{}: {}", file.string(), words);
  }
}

}  // namespace

HistoryDatabase::HistoryDatabase(const fs::path& file, Use use, int patience_ms)
    : file_(file), patience_ms_(patience_ms) {
  std::error_code failed;
  const auto type_of = [&] { return fs::status(file, failed).type(); };
  if (type_of() == fs::file_type::not_found) {
    if (use == Use::read) {
      throw UsageError("there is no history {}: `launchgap history add {} SESSION…` begins one",
                       file.string(),
                       file.string());
    }
    create();
  }
  if (type_of() != fs::file_type::regular) {
    throw UsageError("{} is no history: it is a folder, or no file of data", file.string());
  }
  if (fs::file_size(file, failed) == 0) {
    throw Error(
        "{} is empty: it is no history, and may be what is left of one. It stays as it is: put a "
        "copy of it back, or remove it to begin a new one",
        file.string());
  }
  try {
    open(use);
  } catch (...) {
    sqlite3_close(database_);
    throw;
  }
}

SqliteStatement HistoryDatabase::statement(std::string_view query) const {
  return {database_, query, [this](int code) { refuse(database_, file_, code); }};
}

std::int64_t HistoryDatabase::pragma(std::string_view name) const {
  SqliteStatement ask = statement(fmt::format("PRAGMA {}", name));
  return ask.next() ? ask.integer(0) : 0;
}

/// To read is opened like to write, where it can be: whoever comes first takes back what a writer
/// left that was killed.
void HistoryDatabase::open(Use use) {
  connect(SQLITE_OPEN_READWRITE);
  if (use == Use::read) run("PRAGMA query_only = ON");
  if (pragma("application_id") != kApplicationId) {
    throw Error("{} is no history, but another program's SQLite file. It stays as it is",
                file_.string());
  }
  version_ = static_cast<int>(pragma("user_version"));
  if (version_ < 1 || version_ > kSchemaVersion) {
    throw Error(
        "{} has the form {} of a history, and this launchgap reads 1 to {}: use the "
        "launchgap that wrote it, or a newer one",
        file_.string(),
        version_,
        kSchemaVersion);
  }
  statement("SELECT count(*) FROM sqlite_master").run();
  if (use == Use::write && version_ < kSchemaVersion) update();
}

/// Nobody reads half of it: two that do it at once do it one after the other.
void HistoryDatabase::update() {
  Transaction transaction(*this);
  version_ = static_cast<int>(pragma("user_version"));
  if (version_ < kSchemaVersion) {
    for (const Change& change : kChanges) {
      if (change.version > version_) run(change.statement);
    }
    run(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  }
  transaction.commit();
  version_ = kSchemaVersion;
}

void HistoryDatabase::connect(int flags) {
  const int code = sqlite3_open_v2(file_.c_str(), &database_, SQLITE_OPEN_NOMUTEX | flags, nullptr);
  if (code != SQLITE_OK) refuse(database_, file_, code);
  sqlite3_busy_timeout(database_, patience_ms_);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  run("PRAGMA foreign_keys = ON");
}

/// Beside its place, and then linked there when it is whole: nobody meets half a history, and of
/// two that make one the second takes what the first has made.
void HistoryDatabase::create() {
  const fs::path place = file_;
  file_ += fmt::format(".new-{}", getpid());
  const fs::path beside = file_;
  std::error_code ignored;
  fs::remove(beside, ignored);
  try {
    connect(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    Transaction transaction(*this);
    for (const std::string_view table : kTables) run(table);
    run(fmt::format("PRAGMA application_id = {}", kApplicationId));
    run(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
    transaction.commit();
  } catch (...) {
    sqlite3_close(std::exchange(database_, nullptr));
    fs::remove(beside, ignored);
    throw;
  }
  sqlite3_close(std::exchange(database_, nullptr));
  file_ = place;
  const bool linked = link(beside.c_str(), place.c_str()) == 0 || errno == EEXIST;
  // A file system without links has renaming.
  const bool renamed = !linked && rename(beside.c_str(), place.c_str()) == 0;
  const int problem = errno;
  fs::remove(beside, ignored);
  if (!linked && !renamed)
    throw Error("{} cannot be made: {}", place.string(), std::strerror(problem));
}

HistoryDatabase::~HistoryDatabase() {
  sqlite3_close(database_);
}

std::int64_t HistoryDatabase::last_row() const {
  return sqlite3_last_insert_rowid(database_);
}

Transaction::Transaction(const HistoryDatabase& database) : database_(database) {
  database_.run("BEGIN IMMEDIATE");
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const std::exception&) {  // SQLite has taken it back itself
  }
}

}  // namespace launchgap::regression
