// A file of SQLite that a test makes, and a reader reads.
#pragma once

#include <filesystem>
#include <sqlite3.h>
#include <string>

#include <gtest/gtest.h>

#include "tests/import/text_file.h"

namespace launchgap::recording {

/// A connection that writes.
class SqliteWriter {
 public:
  explicit SqliteWriter(const std::filesystem::path& file) {
    sqlite3_open(file.c_str(), &database_);
    // The file need not outlive the machine.
    run("PRAGMA synchronous = OFF");
  }
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;
  ~SqliteWriter() { sqlite3_close(database_); }

  void run(const std::string& statements) {
    char* error = nullptr;
    sqlite3_exec(database_, statements.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error, nullptr) << error << ": " << statements;
    sqlite3_free(error);
  }

 private:
  sqlite3* database_ = nullptr;
};

class SqliteFile : public TextFile {
 protected:
  /// The file after these statements.
  std::filesystem::path made_by(const std::string& statements) const {
    const std::filesystem::path path = file("");
    SqliteWriter(path).run("BEGIN; " + statements + "; COMMIT");
    return path;
  }
};

}  // namespace launchgap::recording
