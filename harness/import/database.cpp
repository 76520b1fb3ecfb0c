#include "harness/import/database.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sqlite3.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"

namespace launchgap::recording {
namespace {

[[noreturn]] void refuse(sqlite3* database, int code) {
  stop_if_asked();  // which interrupts it
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT:
      throw Error("it is a damaged SQLite file ({}): export the report once more",
                  sqlite3_errmsg(database));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error("another program is writing to it: wait until it is done");
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    default:
      throw Error("it cannot be read as SQLite: {}", sqlite3_errmsg(database));
  }
}

/// Whether a file was written through a log beside it, of which nothing is left: SQLite would make
/// that log anew, even to read.
bool would_make_log(const std::filesystem::path& file) {
  constexpr std::size_t kReadVersion = 19;  // its place in the header
  constexpr char kThroughLog = 2;
  std::array<char, kReadVersion + 1> header{};
  std::ifstream(file, std::ios::binary).read(header.data(), header.size());
  if (header[kReadVersion] != kThroughLog) return false;
  std::error_code failed;
  const auto left = std::filesystem::file_size(file.string() + "-wal", failed);
  return failed || left == 0;
}

/// A path as a URI, which asks SQLite to leave everything as it is.
std::string read_only_uri(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + (would_make_log(file) ? "?mode=ro&immutable=1" : "?mode=ro");
}

}  // namespace

Database::Database(const std::filesystem::path& file) {
  constexpr int kFlags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(read_only_uri(file).c_str(), &database_, kFlags, nullptr);
  try {
    if (code != SQLITE_OK) refuse(database_, code);
    // What the file defines itself (views, triggers, functions in its schema) is not to be trusted.
    sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, 64 << 20);
    constexpr int kInstructions = 10'000;  // some tens of microseconds
    sqlite3_progress_handler(
        database_, kInstructions, [](void*) { return int{stop_signal != 0}; }, nullptr);
    SqliteStatement names =
        rows("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name");
    while (names.next()) (names.text(1) == "view" ? views_ : tables_).emplace_back(names.text(0));
    SqliteStatement columns = rows("SELECT name FROM pragma_table_info(?)");
    for (const std::string& table : tables_) {
      columns.with(table);
      while (columns.next()) columns_.emplace(table, columns.text(0));
    }
  } catch (...) {
    sqlite3_close(database_);
    throw;
  }
}

SqliteStatement Database::rows(const std::string& query) const {
  return {database_, query, [database = database_](int code) { refuse(database, code); }};
}

Database::~Database() {
  sqlite3_close(database_);
}

bool Database::has(std::string_view table) const {
  return std::ranges::find(tables_, table) != tables_.end();
}

bool Database::has(std::string_view table, std::string_view column) const {
  return columns_.contains(std::pair(std::string(table), std::string(column)));
}

std::string Database::column_or_null(std::string_view table, std::string_view column) const {
  return has(table, column) ? fmt::format("\"{}\"", column) : "NULL";
}

SqliteStatement Database::select(std::string_view table,
                                 std::string_view columns,
                                 std::string_view rest) const {
  std::string list;
  for (const std::string_view column : parts_of(columns, " ")) {
    list += list.empty() ? "" : ", ";
    list += column_or_null(table, column);
  }
  return rows(fmt::format("SELECT {} FROM \"{}\" {}", list, table, rest));
}

std::uint64_t Database::count(std::string_view table) const {
  SqliteStatement rows = this->rows(fmt::format("SELECT count(*) FROM \"{}\"", table));
  return rows.next() ? static_cast<std::uint64_t>(rows.integer(0)) : 0;
}

Stream stream_in(const SqliteStatement& rows, int first_column) {
  return {static_cast<std::uint64_t>(rows.integer(first_column)),
          static_cast<std::uint64_t>(rows.integer(first_column + 1)),
          static_cast<std::uint64_t>(rows.integer(first_column + 2))};
}

void add_kernel(const SqliteStatement& rows, const char* name, Process& process) {
  activity::KernelRun kernel{rows.integer(0),
                             rows.integer(1),
                             process.correlation(static_cast<std::uint64_t>(rows.integer(5))),
                             process.stream(stream_in(rows, 2)),
                             process.trace.name_index(name)};
  for (int i = 0; i < 3; ++i) {
    if (rows.has(7 + i)) kernel.grid[i] = static_cast<std::int32_t>(rows.integer(7 + i));
    if (rows.has(10 + i)) kernel.block[i] = static_cast<std::int32_t>(rows.integer(10 + i));
  }
  process.trace.kernels.push_back(kernel);
}

void add_transfer(const SqliteStatement& rows, bool fill, Process& process) {
  constexpr std::int64_t kHostToDevice = 1, kDeviceToHost = 2;
  process.trace.transfers.push_back(
      {rows.integer(0),
       rows.integer(1),
       static_cast<std::uint64_t>(rows.integer(6)),
       process.correlation(static_cast<std::uint64_t>(rows.integer(5))),
       process.stream(stream_in(rows, 2)),
       fill,
       !fill && rows.integer(7) == kHostToDevice,
       !fill && rows.integer(7) == kDeviceToHost});
}

}  // namespace launchgap::recording
