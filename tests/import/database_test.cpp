#include "harness/import/database.h"

#include <string>

#include <gmock/gmock.h>

#include "harness/core/stop.h"
#include "tests/error_of.h"
#include "tests/import/sqlite_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
namespace fs = std::filesystem;

struct Databases : SqliteFile {
  static std::vector<std::string> beside(const fs::path& file) {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(file.parent_path()))
      names.push_back(entry.path().filename());
    return names;
  }
};

TEST_F(Databases, KnowTheirTablesViewsAndColumns) {
  const Database database(made_by(R"(CREATE TABLE b(x, "end"); CREATE TABLE "a'b"(y);
    CREATE VIEW v AS SELECT 1 AS z; INSERT INTO b VALUES (1, NULL), (2, 'two');)"));
  EXPECT_THAT(database.tables(), ElementsAre("a'b", "b"));
  EXPECT_THAT(database.views(), ElementsAre("v"));
  EXPECT_TRUE(database.has("b"));
  EXPECT_FALSE(database.has("v"));
  EXPECT_TRUE(database.has("b", "end"));
  EXPECT_TRUE(database.has("a'b", "y"));
  EXPECT_FALSE(database.has("b", "y"));
  EXPECT_EQ(database.column_or_null("b", "end"), "\"end\"");
  EXPECT_EQ(database.column_or_null("b", "y"), "NULL");
  EXPECT_EQ(database.count("b"), 2u);
  EXPECT_EQ(database.count("a'b"), 0u);
}

TEST_F(Databases, GiveNothingForAColumnThatIsNotThere) {
  const Database database(
      made_by(R"(CREATE TABLE b(x, "end"); INSERT INTO b VALUES (1, NULL), (2, 'two');)"));
  SqliteStatement rows = database.select("b", "x y end", "ORDER BY x DESC");
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), 2);
  EXPECT_FALSE(rows.has(1));
  EXPECT_EQ(rows.integer(1), 0);
  EXPECT_EQ(rows.text(1), "");
  EXPECT_EQ(rows.maybe_number(1), std::nullopt);
  EXPECT_TRUE(rows.has(2));
  EXPECT_EQ(rows.text(2), "two");
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.number(0), 1.0);
  EXPECT_EQ(rows.maybe_number(0), 1.0);
  EXPECT_FALSE(rows.has(2));
  EXPECT_FALSE(rows.next());
}

TEST_F(Databases, ParametersAreSetInTheirOrder) {
  const Database database(made_by("CREATE TABLE b(x)"));
  SqliteStatement rows = database.rows("SELECT ?1, ?2, ?3, ?4, ?5");
  rows.with(std::int64_t{1} << 40, 2, 0.5, std::string("text"), std::optional<double>());
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), std::int64_t{1} << 40);
  EXPECT_EQ(rows.integer(1), 2);
  EXPECT_EQ(rows.number(2), 0.5);
  EXPECT_EQ(rows.text(3), "text");
  EXPECT_FALSE(rows.has(4));
  rows.with(1, 2, 3, 4, std::optional(0.25));
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.number(4), 0.25);
  rows.run();
}

TEST_F(Databases, MayHaveAnyName) {
  const fs::path made = made_by("CREATE TABLE b(x)");
  const fs::path odd = made.parent_path() / "a%20b?mode=rw#c d";
  fs::rename(made, odd);
  EXPECT_THAT(Database(odd).tables(), ElementsAre("b"));
  EXPECT_THAT(beside(odd), ElementsAre(odd.filename())) << "and nothing is made beside them";
}

/// SQLite would make the log anew, even to read.
TEST_F(Databases, ThatHadALogGetNone) {
  const fs::path path = file("");
  SqliteWriter(path).run("PRAGMA journal_mode = WAL; CREATE TABLE b(x);");
  ASSERT_THAT(beside(path), ElementsAre("file"));
  {
    const Database database(path);
    EXPECT_THAT(database.tables(), ElementsAre("b"));
    EXPECT_THAT(beside(path), ElementsAre("file"));
    EXPECT_THAT(database.tables(), ElementsAre("b"));
  }
  // As an empty one is left by a program that was killed.
  const fs::path log = path.string() + "-wal";
  std::ofstream(log).flush();
  EXPECT_THAT(Database(path).tables(), ElementsAre("b"));
  EXPECT_THAT(beside(path), UnorderedElementsAre("file", "file-wal"));
}

TEST_F(Databases, HaveWhatIsStillInTheirLog) {
  const fs::path path = file("");
  SqliteWriter writer(path);
  writer.run("PRAGMA journal_mode = WAL; CREATE TABLE b(x);");
  EXPECT_THAT(Database(path).tables(), ElementsAre("b"));
}

TEST_F(Databases, ThatAreDamagedAreRefused) {
  const std::string damaged = "it is a damaged SQLite file (";
  EXPECT_THAT(error_of([&] { Database(file("SQLite format 3")); }),
              HasSubstr(damaged + "file is not a database): export the report once more"));
  EXPECT_THAT(error_of([&] { Database(file(std::string(4096, 'x'))); }), HasSubstr(damaged));
  EXPECT_THAT(error_of([&] { Database("/nowhere/at/all"); }),
              HasSubstr("it cannot be read as SQLite: unable to open database file"));
}

TEST_F(Databases, ThatAreWrittenToAreRefused) {
  const fs::path path = made_by("CREATE TABLE b(x)");
  SqliteWriter writer(path);
  writer.run("BEGIN EXCLUSIVE");
  EXPECT_EQ(error_of([&] { Database database(path); }),
            "another program is writing to it: wait until it is done");
}

TEST_F(Databases, HaveNoTextBeyond64MiB) {
  const Database database(made_by("CREATE TABLE b(x)"));
  EXPECT_TRUE(database.rows("SELECT length(zeroblob(64 << 20))").next());
  EXPECT_EQ(error_of([&] { database.rows("SELECT length(zeroblob((64 << 20) + 1))").next(); }),
            "it cannot be read as SQLite: string or blob too big");
}

TEST_F(Databases, DoNotDecideWhatIsRun) {
  const Database database(
      made_by("CREATE TABLE b(x); CREATE VIEW v AS SELECT load_extension('x') AS y;"));
  EXPECT_EQ(error_of([&] { database.rows("SELECT y FROM v").next(); }),
            "it cannot be read as SQLite: unsafe use of load_extension()");
}

TEST_F(Databases, AreReadNoFurtherOnceASignalCame) {
  const Database database(made_by("CREATE TABLE b(x)"));
  SqliteStatement long_one = database.rows(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT "
      "max(i) FROM n");
  stop_signal = SIGINT;
  EXPECT_THROW(long_one.next(), Stopped);
  stop_signal = 0;
  ASSERT_TRUE(long_one.next());
  EXPECT_EQ(long_one.integer(0), 100'000);
}

}  // namespace
}  // namespace launchgap::recording
