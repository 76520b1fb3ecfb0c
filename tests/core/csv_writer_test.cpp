#include "harness/core/csv_writer.h"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

std::string written_text(const fs::path& path) {
  return InputFile(path).text(1 << 22);
}

TEST(Csv, QuotesWhatNeedsIt) {
  const TemporaryFolder folder;
  CsvWriter out(folder.path() / "a.csv", {"plain", "hostile"});
  out.row({"a", "b,c"});
  out.row({"", "say \"hi\""});
  out.row({"tab\there", "two\nlines"});
  out.commit();
  EXPECT_EQ(written_text(folder.path() / "a.csv"),
            "plain,hostile\r\n"
            "a,\"b,c\"\r\n"
            ",\"say \"\"hi\"\"\"\r\n"
            "tab\there,\"two\nlines\"\r\n");
}

TEST(Csv, ARaggedRowIsABug) {
  const TemporaryFolder folder;
  CsvWriter out(folder.path() / "a.csv", {"one", "two"});
  EXPECT_THROW(out.row({"only one"}), std::logic_error);
}

TEST(Csv, NothingIsThereBeforeItIsWhole) {
  const TemporaryFolder folder;
  CsvWriter out(folder.path() / "a.csv", {"one"});
  out.row({"1"});
  EXPECT_FALSE(fs::exists(folder.path() / "a.csv"));
  out.commit();
  EXPECT_TRUE(fs::exists(folder.path() / "a.csv"));
}

TEST(Csv, AnUnwritablePlaceIsNamed) {
  EXPECT_THROW(CsvWriter("/nowhere/at/all/a.csv", {"one"}), Error);
  EXPECT_THROW(write_file("/nowhere/at/all/a.txt", "text"), Error);
}

TEST(Cell, NumbersReadBackEqualAndMissingOnesAreEmpty) {
  EXPECT_EQ(cell(std::nullopt), "");
  EXPECT_EQ(cell(std::nan("")), "");
  EXPECT_EQ(cell(2310.0), "2310");
  EXPECT_EQ(std::stod(cell(0.1 + 0.2)), 0.1 + 0.2);
  EXPECT_EQ(cell(true), "true");
}

}  // namespace
}  // namespace launchgap
