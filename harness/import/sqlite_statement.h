// A statement of SQLite, whoever wrote the file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace launchgap {

/// It may be used again and again. Parameters count from 1, columns from 0. `refuse` is called with
/// SQLite's code where something fails, and throws what says it in the words of the file's user.
class SqliteStatement {
 public:
  using Refuse = std::function<void(int code)>;

  SqliteStatement(sqlite3* database, std::string_view query, Refuse refuse);
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;
  SqliteStatement(SqliteStatement&& other) noexcept;
  ~SqliteStatement();

  /// Sets all parameters, and begins anew.
  template <class... Values>
  SqliteStatement& with(const Values&... values) {
    reset();
    int at = 0;
    (bind(++at, values), ...);
    return *this;
  }
  /// Goes to the next row; false behind the last.
  bool next();
  /// For what has no rows.
  void run();

  bool has(int column) const;  // it is not NULL
  /// Of a text that is a whole number too; 0 for what is none.
  std::int64_t integer(int column) const;
  double number(int column) const;
  std::optional<double> maybe_number(int column) const;
  std::string_view text(int column) const;  // until the next row

 private:
  void reset();
  void bind(int at, std::int64_t value);
  void bind(int at, int value) { bind(at, std::int64_t{value}); }
  void bind(int at, double value);
  void bind(int at, std::string_view value);
  void bind(int at, const std::string& value) { bind(at, std::string_view(value)); }
  void bind(int at, const std::optional<double>& value);

  Refuse refuse_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace launchgap
