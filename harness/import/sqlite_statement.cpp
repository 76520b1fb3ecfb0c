#include "harness/import/sqlite_statement.h"

#include <sqlite3.h>
#include <utility>

namespace launchgap {

SqliteStatement::SqliteStatement(sqlite3* database, std::string_view query, Refuse refuse)
    : refuse_(std::move(refuse)) {
  const int code = sqlite3_prepare_v2(
      database, query.data(), static_cast<int>(query.size()), &statement_, nullptr);
  if (code != SQLITE_OK) refuse_(code);
}

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : refuse_(std::move(other.refuse_)), statement_(std::exchange(other.statement_, nullptr)) {}

SqliteStatement::~SqliteStatement() {
  sqlite3_finalize(statement_);
}

void SqliteStatement::reset() {
  sqlite3_reset(statement_);
}

bool SqliteStatement::next() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(statement_);
  if (code != SQLITE_DONE) refuse_(code);
  return false;
}

void SqliteStatement::run() {
  while (next()) {
  }
}

bool SqliteStatement::has(int column) const {
  return sqlite3_column_type(statement_, column) != SQLITE_NULL;
}

std::int64_t SqliteStatement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double SqliteStatement::number(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::optional<double> SqliteStatement::maybe_number(int column) const {
  return has(column) ? std::optional(number(column)) : std::nullopt;
}

std::string_view SqliteStatement::text(int column) const {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (!text) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void SqliteStatement::bind(int at, std::int64_t value) {
  sqlite3_bind_int64(statement_, at, value);
}

void SqliteStatement::bind(int at, double value) {
  sqlite3_bind_double(statement_, at, value);  // NULL for NaN
}

void SqliteStatement::bind(int at, std::string_view value) {
  sqlite3_bind_text(statement_, at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
}

void SqliteStatement::bind(int at, const std::optional<double>& value) {
  if (value) {
    bind(at, *value);
  } else {
    sqlite3_bind_null(statement_, at);
  }
}

}  // namespace launchgap
