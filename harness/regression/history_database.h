// The SQLite file behind a history: opened with care, and every failure says what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "harness/import/sqlite_statement.h"

struct sqlite3;

namespace launchgap::regression {

inline constexpr int kPatienceMs = 60'000;

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

}  // namespace launchgap::regression
