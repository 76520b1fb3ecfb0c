// A SQLite file that somebody else wrote, for reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/import/recording.h"
#include "harness/import/sqlite_statement.h"

struct sqlite3;

namespace launchgap::recording {

class Database {
 public:
  /// Opens a file, without changing it or anything beside it. Throws Error that does not name the
  /// file: it is no SQLite, damaged, or somebody writes to it.
  explicit Database(const std::filesystem::path& file);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  const std::vector<std::string>& tables() const { return tables_; }
  const std::vector<std::string>& views() const { return views_; }
  bool has(std::string_view table) const;
  bool has(std::string_view table, std::string_view column) const;
  /// The column, or NULL where the table has none: columns come and go with the schema.
  std::string column_or_null(std::string_view table, std::string_view column) const;

  /// These columns of a table's rows ("start end"), NULL for one that it lacks; `rest` is what
  /// stands behind.
  SqliteStatement select(std::string_view table,
                         std::string_view columns,
                         std::string_view rest = "") const;
  /// What is read of it throws Error if the file cannot be read on, and Stopped once a signal was
  /// noted.
  SqliteStatement rows(const std::string& query) const;
  std::uint64_t count(std::string_view table) const;

 private:
  sqlite3* database_ = nullptr;
  std::vector<std::string> tables_, views_;
  std::set<std::pair<std::string, std::string>, std::less<>> columns_;
};

// --- Rows of what a GPU did, which all recorders have as CUPTI told it ---

/// The columns that they begin with. Behind them a kernel's rows have its name and kExtentColumns,
/// those of copies and fills "bytes copyKind".
inline constexpr std::string_view kWorkColumns =
    "start end deviceId contextId streamId correlationId";
inline constexpr std::string_view kExtentColumns = "gridX gridY gridZ blockX blockY blockZ";

/// Of the columns deviceId, contextId and streamId, from this one on.
Stream stream_in(const SqliteStatement& rows, int first_column);
void add_kernel(const SqliteStatement& rows, const char* name, Process& process);
void add_transfer(const SqliteStatement& rows, bool fill, Process& process);

}  // namespace launchgap::recording
