// A SQLite file that somebody else wrote, for reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace launchgap::recording {

/// The rows of a query, one at a time. Columns count from 0.
class Rows {
 public:
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows();

  /// Whether there is a next one, and goes there. Throws Error if the file cannot be read on.
  bool next();
  bool has(int column) const;  // it is not NULL
  /// Of a text that is a whole number too; 0 for what is none.
  std::int64_t integer(int column) const;
  std::string_view text(int column) const;  // until the next row

 private:
  friend class Database;
  Rows(sqlite3* database, const std::string& query);
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
};

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

  /// These columns of a table's rows, NULL for one that it lacks; `rest` is what stands behind.
  Rows select(std::string_view table,
              std::initializer_list<std::string_view> columns,
              std::string_view rest = "") const;
  Rows rows(const std::string& query) const { return {database_, query}; }
  std::uint64_t count(std::string_view table) const;

 private:
  sqlite3* database_ = nullptr;
  std::vector<std::string> tables_, views_;
  std::set<std::pair<std::string, std::string>, std::less<>> columns_;
};

}  // namespace launchgap::recording
