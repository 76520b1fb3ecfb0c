#include "harness/import/published_table.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/output_file.h"
#include "harness/record/json.h"
#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
namespace fs = std::filesystem;

const std::string kPublishedHead =
    "gpu,benchmark,case,metric,unit,value,library,library_version,cuda,driver,algorithm,source,"
    "licence\n";

/// A row of kPublishedHead; what is not said is as in most tables.
struct Line {
  std::string gpu = "A100", benchmark = "matmul/shapes", name = "shape:10x10x50/type:fp32",
              metric = "tflops", unit = "TFLOP/s", value = "1.5", software = "cuBLAS",
              version = "7.5", cuda = "12.4", driver = "", algorithm = "", source = "a sheet",
              licence = "MIT";
  std::string text() const {
    return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       gpu,
                       benchmark,
                       name,
                       metric,
                       unit,
                       value,
                       software,
                       version,
                       cuda,
                       driver,
                       algorithm,
                       source,
                       licence);
  }
};
Line time_of_it(const std::string& ns) {
  Line line;
  line.metric = "device_ns";
  line.unit = "ns";
  line.value = ns;
  return line;
}

struct Published : TextFile {
  const std::vector<std::string> benchmarks = {"matmul/shapes", "matmul/library", "copy/copies"};

  /// What is said of a table, behind the name of its file; empty if nothing.
  std::string says(const std::string& text, std::size_t most = 100) const {
    const fs::path path = file(text);
    try {
      PublishedTables(benchmarks, most).read(path);
      return "";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(path.string())) << message;
      return message.substr(std::min(message.size(), path.string().size()));
    }
  }
  std::string says_of(const Line& line) const { return says(kPublishedHead + line.text()); }
};

TEST_F(Published, ValuesStandByGpuFamilyAndCase) {
  PublishedTables tables(benchmarks);
  Line other;
  other.gpu = "H100";
  other.driver = "535";
  other.benchmark = "others/thing";
  other.name = "n:1";
  other.value = "3";
  other.algorithm = "Winograd";
  other.version = "";
  tables.read(file(kPublishedHead + Line().text() + other.text() + time_of_it("8").text()));
  ASSERT_EQ(tables.gpus().size(), 2u);
  const auto& [first, families] = *tables.gpus().begin();
  EXPECT_EQ(first, (PublishedGpu{"A100", "12.4", ""}));
  ASSERT_TRUE(families.contains("matmul"));
  const PublishedCase& own = families.at("matmul").at("matmul/shapes/shape:10x10x50/type:fp32");
  ASSERT_EQ(own.values.size(), 2u);
  EXPECT_EQ(own.values[0].metric->key, "tflops");
  EXPECT_EQ(own.values[0].value, 1.5);
  EXPECT_EQ(own.values[0].line, 2u);
  EXPECT_EQ(own.values[0].file, 0u);
  EXPECT_EQ(own.values[1].metric->key, "device_ns");
  EXPECT_EQ(own.values[1].line, 4u);
  EXPECT_EQ(*own.origin, (PublishedOrigin{"a sheet", "MIT", "cuBLAS 7.5", ""}));
  const auto& [second, others] = *tables.gpus().rbegin();
  EXPECT_EQ(second, (PublishedGpu{"H100", "12.4", "535"}));
  EXPECT_EQ(*others.at("others").at("others/thing/n:1").origin,
            (PublishedOrigin{"a sheet", "MIT", "cuBLAS", "Winograd"}));
}

TEST_F(Published, ASoftwareHasItsVersionOnce) {
  const struct {
    const char *library, *version, *software;
  } cases[] = {{"cuBLAS", "7.5", "cuBLAS 7.5"},
               {"cuBLAS 7.5", "7.5", "cuBLAS 7.5"},
               {"cuBLAS7.5", "7.5", "cuBLAS7.5 7.5"},
               {"", "7.5", "7.5"},
               {"cuBLAS", "", "cuBLAS"},
               {"", "", ""}};
  for (const auto& [library, version, software] : cases) {
    Line line;
    line.software = library;
    line.version = version;
    PublishedTables tables(benchmarks);
    tables.read(file(kPublishedHead + line.text()));
    EXPECT_EQ(tables.gpus().begin()->second.begin()->second.begin()->second.origin->software,
              software);
  }
}

TEST_F(Published, ColumnsStandInAnyOrderAndBlanksAroundCellsAreNone) {
  PublishedTables tables(benchmarks);
  tables.read(
      file("\xEF\xBB\xBF value ,unit,gpu,\tbenchmark,case,metric,source,licence\r\n"
           " 1.5\t,TFLOP/s, A100 ,matmul/shapes,shape:1x1x1,tflops,a sheet,MIT\r\n"));
  EXPECT_EQ(tables.gpus().begin()->first, (PublishedGpu{"A100", "", ""}));
  EXPECT_EQ(tables.gpus().begin()->second.at("matmul").begin()->second.values.at(0).value, 1.5);
}

TEST_F(Published, HeadsNameTheirColumnsOnce) {
  const std::string needed = "gpu,benchmark,case,metric,unit,value,source,licence";
  EXPECT_EQ(says(""), ": it is empty");
  EXPECT_EQ(says(needed + "\n"), ": no value is in it");
  EXPECT_EQ(says(needed + ",cost\n"),
            ", line 1, column cost: a table of published values has no such column");
  EXPECT_EQ(says(needed + ",cuda,cuda\n"), ", line 1: column cuda is there twice");
  for (const char* const missing :
       {"gpu,", "benchmark,", "case,", "metric,", "unit,", "value,", "source,"}) {
    std::string head = needed;
    head.erase(head.find(missing), std::string(missing).size());
    const std::string name(missing, std::string(missing).size() - 1);
    EXPECT_EQ(says(head + "\n"), fmt::format(" has no column '{}'", name));
  }
  EXPECT_EQ(says("gpu,benchmark,case,metric,unit,value,source\n"), " has no column 'licence'");
}

TEST_F(Published, LinesThatCannotBeReadAreNamed) {
  const std::string good = Line().text();
  EXPECT_EQ(says(kPublishedHead + good + "A100,matmul\n"), ", line 3: 2 cells under 13 columns");
  EXPECT_EQ(says(kPublishedHead + good.substr(0, good.size() - 1)),
            ": its last line has no end; the file may be cut off");
  EXPECT_EQ(says(kPublishedHead + "\xFF" + good), ", line 2: not UTF-8; save it as UTF-8");
  EXPECT_EQ(says(kPublishedHead + "\"" + good), ", line 2: a quote that is never closed");
  EXPECT_THAT(says(kPublishedHead + "\xEF\xBB\xBF" + good),
              StartsWith(", line 2, column gpu: '\\ufeff"))
      << "a mark is one at the beginning alone";
}

TEST_F(Published, LinesAreAsLongAs64KiB) {
  const auto padded = [&](std::size_t size) {
    return kPublishedHead + std::string(size - Line().text().size() + 1, ' ') + Line().text();
  };
  EXPECT_EQ(says(padded(1 << 16)), "");
  EXPECT_THAT(says(padded((1 << 16) + 1)), HasSubstr("line 2"));
}

TEST_F(Published, CellsAreAsLongAsTheirLimits) {
  Line line;
  line.cuda = std::string(300, 'x');
  line.source = line.licence = std::string(2000, 'x');
  EXPECT_EQ(says_of(line), "");
  line.cuda += 'x';
  EXPECT_EQ(says_of(line), ", line 2, column cuda: it has 301 bytes, and may have 300");
  line.cuda = "";
  line.source += 'x';
  EXPECT_EQ(says_of(line), ", line 2, column source: it has 2001 bytes, and may have 2000");
  line.source = "s";
  line.licence += 'x';
  EXPECT_EQ(says_of(line), ", line 2, column licence: it has 2001 bytes, and may have 2000");
}

TEST_F(Published, LongCellsAreCutInMessages) {
  Line line;
  line.value = std::string(100, 'x');
  EXPECT_THAT(says_of(line), HasSubstr("'" + line.value + "' is no number"));
  const std::string longest = line.value;
  line.value += 'x';
  EXPECT_THAT(says_of(line), HasSubstr("'" + longest + "…' is no number"));
}

TEST_F(Published, CellsAreTextThatCanBeShown) {
  for (const auto& [gpu, shown] : {std::pair("A\x7F", "A\\x7f"),
                                   std::pair("A\x1F", "A\\x1f"),
                                   std::pair("A\xE2\x80\xA8", "A\\u2028")}) {
    Line line;
    line.gpu = gpu;
    EXPECT_EQ(says_of(line),
              fmt::format(", line 2, column gpu: '{}' has a control character in it", shown));
  }
  for (const char* const gpu : {"A B", "A~", "Größe", "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E"}) {
    Line line;
    line.gpu = gpu;
    EXPECT_EQ(says_of(line), "") << gpu;
  }
  // Each cell is asked, also of an optional column, and the last.
  Line line;
  line.licence = "M\x01";
  EXPECT_THAT(says_of(line), StartsWith(", line 2, column licence: "));
  line = {};
  line.algorithm = "M\x01";
  EXPECT_THAT(says_of(line), StartsWith(", line 2, column algorithm: 'M\\x01' has a control"));
}

TEST_F(Published, WhatIsNeededIsNotEmpty) {
  const std::pair<std::string Line::*, const char*> cases[] = {
      {&Line::gpu, "gpu"},
      {&Line::benchmark, "benchmark"},
      {&Line::name, "case"},
      {&Line::metric, "metric"},
      {&Line::value, "value"},
      {&Line::source, "source"},
      {&Line::licence, "licence"},
  };
  for (const auto& [cell, column] : cases) {
    Line line;
    line.*cell = " ";
    EXPECT_EQ(says_of(line), fmt::format(", line 2, column {}: it is empty", column));
  }
}

TEST_F(Published, ValuesAreNumbersFrom1eMinus30To1e30) {
  const auto of = [&](const std::string& value) {
    Line line;
    line.value = value;
    return says_of(line);
  };
  for (const char* const good : {"1e-30", "1e30", "0.5", "12"}) EXPECT_EQ(of(good), "") << good;
  for (const char* const bad : {"9e-31", "1.1e30"}) {
    EXPECT_EQ(of(bad), fmt::format(", line 2, column value: '{}' is not from 1e-30 to 1e+30", bad));
  }
  for (const char* const bad : {"0", "-1", "x", "1x", "nan", "inf", "1e999"}) {
    EXPECT_EQ(of(bad), fmt::format(", line 2, column value: '{}' is no number above 0", bad));
  }
}

TEST_F(Published, MetricsAndUnitsAreLaunchgaps) {
  Line line;
  line.metric = "tflop";
  EXPECT_EQ(says_of(line),
            ", line 2, column metric: there is no metric 'tflop': did you mean 'tflops'?");
  line = {};
  line.unit = "GFLOP/s";
  EXPECT_EQ(says_of(line), ", line 2, column unit: tflops is in TFLOP/s, and not in 'GFLOP/s'");
}

TEST_F(Published, AlgorithmsAreThoseOfConvolutions) {
  Line line;
  line.algorithm = "Winograd";
  EXPECT_EQ(says_of(line), "");
  line.algorithm = "Winograt";
  EXPECT_EQ(says_of(line),
            ", line 2, column algorithm: there is no algorithm 'Winograt': did you mean "
            "'Winograd'?");
}

TEST_F(Published, BenchmarksAreLaunchgapsOrOfAnotherFamily) {
  const auto of = [&](const std::string& benchmark) {
    Line line;
    line.benchmark = benchmark;
    return says_of(line);
  };
  for (const char* const good : {"others/shapes", "a/z", "az/09_", "z/a", "matmul/library"})
    EXPECT_EQ(of(good), "") << good;
  for (const char* const bad :
       {"matmul", "/shapes", "matmul/", "Matmul/shapes", "a/b/c", "a/b-c"}) {
    EXPECT_EQ(of(bad),
              fmt::format(", line 2, column benchmark: '{}' is none, as matmul/shapes is: "
                          "`launchgap list benchmarks`",
                          bad));
  }
  EXPECT_EQ(of("matmul/shape"),
            ", line 2, column benchmark: launchgap has no 'matmul/shape': did you mean "
            "'matmul/shapes'?; what it does not measure is of a family that it does not have, such "
            "as others/shape");
}

TEST_F(Published, CasesHaveEachAxisOnce) {
  const auto of = [&](const std::string& name) {
    Line line;
    line.name = name;
    return says_of(line);
  };
  EXPECT_EQ(of("shape:1x1x1/type:fp32"), "");
  EXPECT_EQ(of("more/shape:1x1x1"),
            ", line 2, column case: it begins with what is no axis: axis:value/axis:value");
  EXPECT_EQ(of("type:fp32/shape:1x1x1/type:fp32"),
            ", line 2, column case: axis 'type' is there twice");
}

TEST_F(Published, ARateAndATimeMustSayTheSame) {
  // 10,000 operations; 1 TFLOP/s takes 10 ns.
  Line rate;
  rate.value = "1";
  const auto of = [&](const std::string& ns) {
    return says(kPublishedHead + rate.text() + time_of_it(ns).text());
  };
  for (const char* const good : {"5", "10", "20"}) EXPECT_EQ(of(good), "") << good;
  EXPECT_EQ(of("4"),
            ", line 3, column value: with the tflops in line 2 it makes 4e+03 operations, and the "
            "case has 1e+04");
  EXPECT_EQ(of("21"),
            ", line 3, column value: with the tflops in line 2 it makes 2.1e+04 operations, and "
            "the case has 1e+04");
  EXPECT_EQ(says(kPublishedHead + time_of_it("21").text() + rate.text()),
            ", line 3, column value: with the device_ns in line 2 it makes 2.1e+04 operations, and "
            "the case has 1e+04");
  Line third;
  third.metric = "call_ns";
  third.unit = "ns";
  third.value = "1";
  EXPECT_EQ(says(kPublishedHead + rate.text() + third.text()), "")
      << "which says nothing of operations";
  EXPECT_EQ(says(kPublishedHead + third.text() + rate.text()), "");
}

TEST_F(Published, ACaseHasOneOriginAndEachMetricOnce) {
  const auto of = [&](const std::string& second) {
    return says(kPublishedHead + Line().text() + second);
  };
  EXPECT_EQ(of(Line().text()),
            ", line 3, column case: a value of it is in line 2 already; a file has one library of "
            "a GPU");
  const auto with = [&](std::string Line::*cell, const char* value) {
    Line line = time_of_it("8");
    line.*cell = value;
    return of(line.text());
  };
  EXPECT_EQ(with(&Line::source, "b"),
            ", line 3, column source: 'b', and 'a sheet' of the same case in line 2; a case has "
            "one");
  EXPECT_EQ(with(&Line::licence, "b"),
            ", line 3, column licence: 'b', and 'MIT' of the same case in line 2; a case has one");
  EXPECT_EQ(with(&Line::version, "8"),
            ", line 3, column library: 'cuBLAS 8', and 'cuBLAS 7.5' of the same case in line 2; a "
            "case has one");
  EXPECT_EQ(with(&Line::algorithm, "FFT"),
            ", line 3, column algorithm: 'FFT', and '' of the same case in line 2; a case has one");
  EXPECT_EQ(with(&Line::gpu, "another"), "");
  EXPECT_EQ(with(&Line::cuda, "11"), "");
}

TEST_F(Published, AnotherTableIsNamed) {
  const fs::path first = file(kPublishedHead + Line().text());
  const fs::path second = first.parent_path() / "second";
  fs::copy(first, second);
  PublishedTables tables(benchmarks);
  tables.read(first);
  EXPECT_EQ(error_of([&] { tables.read(second); }),
            fmt::format("{}, line 2, column case: a value of it is in {}, line 2, already; a file "
                        "has one library of a GPU",
                        second.string(),
                        first.string()));
}

TEST_F(Published, ThereAreNoMoreValuesThanTheirLimit) {
  Line another;
  another.gpu = "H100";
  const std::string two = kPublishedHead + Line().text() + another.text();
  EXPECT_EQ(says(two, 2), "");
  EXPECT_EQ(says(two, 1),
            ", line 3, column value: these are more than 1 values: make several sessions of them");
}

/// A file with a hole takes no place.
TEST_F(Published, TablesAreAsLongAs512MiB) {
  const fs::path path = file("x\n");
  fs::resize_file(path, std::uintmax_t{512} << 20);
  EXPECT_THAT(error_of([&] { PublishedTables(benchmarks).read(path); }),
              HasSubstr("column x: a table of published values has no such column"));
  fs::resize_file(path, (std::uintmax_t{512} << 20) + 1);
  EXPECT_EQ(error_of([&] { PublishedTables(benchmarks).read(path); }),
            path.string() + " is longer than 536870912 bytes");
}

TEST_F(Published, TablesAreKnownByTheirFirstLine) {
  EXPECT_TRUE(is_published_sheet(file(kPublishedHead)));
  EXPECT_TRUE(is_published_sheet(file("\xEF\xBB\xBFmetric, gpu,case ,benchmark,and more\n")));
  EXPECT_TRUE(is_published_sheet(file("gpu,benchmark,case,metric")));
  for (const char* const other : {"",
                                  "gpu,benchmark,case\n",
                                  "benchmark,case,metric\n",
                                  "gpu,case,metric\n",
                                  "gpu,benchmark,metric\n",
                                  "\"gpu,benchmark,case,metric\n"})
    EXPECT_FALSE(is_published_sheet(file(other))) << other;
  EXPECT_FALSE(is_published_sheet("/nowhere"));
  EXPECT_FALSE(
      is_published_sheet(file(kPublishedHead.substr(0, kPublishedHead.size() - 1) +
                              std::string((1 << 16) - kPublishedHead.size() + 2, ' ') + "\n")));
  EXPECT_TRUE(
      is_published_sheet(file(kPublishedHead.substr(0, kPublishedHead.size() - 1) +
                              std::string((1 << 16) - kPublishedHead.size() + 1, ' ') + "\n")));
}

// --- Their session ---

struct PublishedSessions : Published {
  ImportRequest request(const std::vector<fs::path>& files) const {
    ImportRequest made;
    made.files = files;
    made.output = folder_.path() / "session";
    made.benchmarks = benchmarks;
    made.command_line = {"launchgap", "import"};
    return made;
  }
  fs::path second(const std::string& text) const {
    fs::path path = folder_.path() / "second";
    write_file(path, text);
    return path;
  }
  Json session() const {
    std::ifstream in(folder_.path() / "session" / "session.json");
    return Json::parse(in);
  }
  /// Of a session of so many values.
  std::vector<std::string> notes_of(std::size_t count) const {
    std::string text = "gpu,benchmark,case,metric,unit,value,source,licence\n";
    for (std::size_t i = 0; i < count; ++i)
      fmt::format_to(std::back_inserter(text), "A,o/t,n:{},device_ns,ns,1,s,l\n", i);
    import_published(request({file(text)}));
    const Json made = session();
    std::vector<std::string> notes;
    for (const Json& note : made["notes"]) notes.push_back(note["text"]);
    return notes;
  }
  std::string values(const char* name) const {
    std::ifstream in(folder_.path() / "session" / "published" / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const TemporaryFolder folder_;
};

TEST_F(PublishedSessions, HaveADevicePerGpuAndSoftware) {
  Line same_gpu, other, elsewhere = time_of_it("8");
  same_gpu.cuda = "11";
  other.gpu = "H100";
  other.source = "another sheet";
  elsewhere.benchmark = "others/thing";
  elsewhere.name = "n:1";
  const ImportRequest asked =
      request({file(kPublishedHead + Line().text() + time_of_it("8").text() + elsewhere.text() +
                    same_gpu.text()),
               second(kPublishedHead + other.text())});
  EXPECT_THAT(import_published(asked),
              ElementsAre("5 values of 2 GPUs with 3 sets of CUDA and driver, published by 2 "
                          "sources: nothing was measured here"));
  const Json json = session();
  ASSERT_EQ(json["devices"].size(), 3u);
  std::set<std::string> uuids;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json["devices"][i]["index"], i);
    EXPECT_EQ(json["devices"][i]["usable"], true);
    EXPECT_EQ(json["published"]["files"][i]["file"], fmt::format("{}.csv", i));
    uuids.insert(json["devices"][i]["uuid"].get<std::string>());
  }
  EXPECT_EQ(uuids.size(), 3u);
  EXPECT_EQ(json["devices"][1]["name"], "A100");
  EXPECT_EQ(json["devices"][2]["name"], "H100");
  EXPECT_EQ(json["published"]["files"][0]["cuda"], "11");
  EXPECT_EQ(json["published"]["origins"].size(), 2u);
  EXPECT_EQ(json["published"]["origins"][0]["source"], "a sheet");
  EXPECT_EQ(json["runs"], 1);
  EXPECT_EQ(json["state"], "complete");
  ASSERT_EQ(json["notes"].size(), 2u);
  EXPECT_EQ(json["notes"][0]["text"], "published: a sheet (MIT)");
  EXPECT_EQ(json["notes"][1]["text"], "published: another sheet (MIT)");
  EXPECT_EQ(values("1.csv"),
            "case,metric,value,origin\r\n"
            "matmul/shapes/shape:10x10x50/type:fp32,tflops,1.5,0\r\n"
            "matmul/shapes/shape:10x10x50/type:fp32,device_ns,8,0\r\n"
            "others/thing/n:1,device_ns,8,0\r\n");
  EXPECT_EQ(values("2.csv"),
            "case,metric,value,origin\r\n"
            "matmul/shapes/shape:10x10x50/type:fp32,tflops,1.5,1\r\n");
  EXPECT_FALSE(fs::exists(asked.output / "unfinished-import") &&
               fs::is_directory(asked.output / "unfinished-import"));
}

TEST_F(PublishedSessions, AreReadableText) {
  Line line;
  line.source = "Größe";
  import_published(request({file(kPublishedHead + line.text())}));
  std::ifstream in(folder_.path() / "session" / "session.json");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(text, StartsWith("{\n \""));
  EXPECT_THAT(text, HasSubstr("Größe"));
}

TEST_F(PublishedSessions, OfOneSetSayNoMoreThanThat) {
  EXPECT_THAT(import_published(request({file(kPublishedHead + Line().text())})),
              ElementsAre("1 value of 1 GPU, published by 1 source: nothing was measured here"));
}

TEST_F(PublishedSessions, UpToALimitHaveCases) {
  EXPECT_THAT(notes_of(50'000), ElementsAre("published: s (l)"));
}

TEST_F(PublishedSessions, BeyondALimitSayThatTheyHaveNone) {
  EXPECT_THAT(notes_of(50'001),
              ElementsAre("published: s (l)", StartsWith("more than 50000 values: ")));
}

TEST_F(PublishedSessions, AreOfTablesAlone) {
  const fs::path table = file(kPublishedHead), other = second("x\n");
  EXPECT_TRUE(are_published_sheets(request({table, table})));
  EXPECT_FALSE(are_published_sheets(request({other, other})));
  for (const auto& files : {std::vector{table, other}, std::vector{other, table}}) {
    EXPECT_EQ(error_of([&] { are_published_sheets(request(files)); }),
              fmt::format("tables of published values and recordings cannot be one session: {} is "
                          "such a table, {} is none",
                          table.string(),
                          other.string()));
  }
}

TEST_F(PublishedSessions, LeaveNothingOfATableThatCannotBe) {
  EXPECT_THROW(import_published(request({file(kPublishedHead)})), UsageError);
  EXPECT_FALSE(fs::exists(folder_.path() / "session"));
}

}  // namespace
}  // namespace launchgap::recording
