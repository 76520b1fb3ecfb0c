// The SQLite file behind a history: opened with care, and every failure says what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace launchgap::regression {

/// A statement that is used again and again. Parameters count from 1, columns from 0.
class Statement {
 public:
  Statement(sqlite3* database, const std::filesystem::path& file, std::string_view query);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement(Statement&& other) noexcept;
  ~Statement();

  /// Sets all parameters, and begins anew.
  template <class... Values>
  Statement& with(const Values&... values) {
    reset();
    int at = 0;
    (bind(++at, values), ...);
    return *this;
  }
  /// Goes to the next row; false behind the last. Throws Error.
  bool next();
  /// For what has no rows.
  void run();

  bool has(int column) const;  // it is not NULL
  std::int64_t integer(int column) const;
  double number(int column) const;
  std::optional<double> maybe_number(int column) const;
  std::string text(int column) const;

 private:
  void reset();
  void bind(int at, std::int64_t value);
  void bind(int at, int value) { bind(at, std::int64_t{value}); }
  void bind(int at, double value);
  void bind(int at, std::string_view value);
  void bind(int at, const std::string& value) { bind(at, std::string_view(value)); }
  void bind(int at, const std::optional<double>& value);

  sqlite3* database_;
  std::filesystem::path file_;
  sqlite3_stmt* statement_ = nullptr;
};

class HistoryDatabase {
 public:
  enum class Use { read, write };

  /// Opens a history; to write, makes one where there is no file, and brings one that an older
  /// launchgap made up to date. A file that is there and is no
  /// history (another program's, empty, damaged, cut short) is left as it is. Throws UsageError if
  /// there is none to read, and Error that says what is wrong with it and what to do.
  HistoryDatabase(const std::filesystem::path& file, Use use);
  HistoryDatabase(const HistoryDatabase&) = delete;
  HistoryDatabase& operator=(const HistoryDatabase&) = delete;
  ~HistoryDatabase();

  Statement statement(std::string_view query) const { return {database_, file_, query}; }
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

}  // namespace launchgap::regression
