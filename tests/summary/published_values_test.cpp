#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/output_file.h"
#include "harness/import/published_table.h"
#include "harness/summary/published.h"
#include "tests/error_of.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

constexpr const char* kHead = "case,metric,value,origin\n";
constexpr const char* kProductOfSheets = "matmul/shapes/shape:64x64x64/library:cublas/type:fp32";
const double kOperations = 2.0 * 64 * 64 * 64;

struct PublishedFiles : WrittenSession {
  PublishedFiles() {
    meta["published"] = {
        {"origins", {{{"source", "a sheet"}, {"licence", "MIT"}, {"software", "cuBLAS 7.5"}}}},
        {"files", Json::array()}};
  }

  void file(const std::string& rows, const std::string& device = "GPU-1") {
    Json& files = meta["published"]["files"];
    const std::string name = fmt::format("{}.csv", files.size());
    files.push_back({{"device", device}, {"cuda", "7.5"}, {"file", name}});
    std::filesystem::create_directories(path / "published");
    write_file(path / "published" / name, rows);
  }

  /// What is said of a file with this line.
  std::string problem_of(const std::string& line) {
    file(kHead + line + "\n");
    const SessionData session = read();
    EXPECT_THAT(session.cases, IsEmpty()) << line;
    meta["published"]["files"] = Json::array();
    return session.problems.empty() ? "" : session.problems.front();
  }
};

TEST_F(PublishedFiles, AreCases) {
  file(kHead +
       fmt::format("{},tflops,1.5,0\nsuperbench/x/type:fp32,device_ns,7,0\n", kProductOfSheets));
  const SessionData session = read();
  EXPECT_THAT(session.problems, IsEmpty());
  ASSERT_EQ(session.cases.size(), 2);
  const auto& [key, data] = *session.cases.begin();
  EXPECT_EQ(key.name.text(), kProductOfSheets);
  EXPECT_EQ(key.arm, "published");
  EXPECT_EQ(data.method, "published by a sheet: cuBLAS 7.5");
  EXPECT_THAT(data.samples.at("tflops"), ElementsAre(Pair(0, ElementsAre(1.5))));
  EXPECT_NEAR(data.samples.at("device_ns").at(0)[0], kOperations / 1.5 / 1e3, 1e-9);
  EXPECT_THAT(session.cases.rbegin()->second.samples, ElementsAre(Key("device_ns")));
  ASSERT_EQ(session.runs.size(), 2) << "one for each family";
  EXPECT_EQ(session.runs[0].process_config.text(), "matmul");
  EXPECT_EQ(session.runs[0].fingerprint["cuda"], "7.5");
  EXPECT_EQ(session.runs[0].cases_ok, 1);
}

TEST_F(PublishedFiles, OfVeryManyValuesAreNoCases) {
  std::string rows = kHead;
  for (std::size_t i = 0; i < kMostPublishedCases; ++i)
    rows += fmt::format("matmul/shapes/shape:{}x64x64/type:fp32,device_ns,{},0\n", i + 1, i + 1);
  file(rows + "matmul/shapes/shape:1x64x64/type:fp32,tflops,3,0\nlaunch/x/a:b,api_ns,5,0\n");
  const SessionData session = read();
  EXPECT_THAT(session.problems, IsEmpty());
  EXPECT_THAT(session.cases, IsEmpty());
  ASSERT_EQ(session.published.size(), 1);
  const std::vector<PublishedValue>& values = session.published[0].values;
  ASSERT_EQ(values.size(), kMostPublishedCases + 1) << "of one case only the rate stays";
  EXPECT_EQ(values[0].name.text(), "launch/x/a:b");
  EXPECT_EQ(values[1].name.text(), "matmul/shapes/shape:1x64x64/type:fp32");
  EXPECT_DOUBLE_EQ(values[1].value, 3) << "what was published, and not what the time gives";
  EXPECT_EQ(values[2].name.text(), "matmul/shapes/shape:2x64x64/type:fp32");
  EXPECT_EQ(values[2].metric->key, "tflops");
  EXPECT_NEAR(values[2].value, 2.0 * 2 * 64 * 64 / 2 / 1e3, 1e-9);
}

TEST_F(PublishedFiles, ThatAreDamagedAreNamedWithTheirLine) {
  EXPECT_THAT(problem_of("launch/x/a:b,tflops,-1,0"), HasSubstr("0.csv, line 2: value '-1'"));
  EXPECT_THAT(problem_of("launch/x/a:b,tflops,0,0"), HasSubstr("line 2: its value"));
  EXPECT_THAT(problem_of("launch/x/a:b,tflops,nan,0"), HasSubstr("value 'nan'"));
  EXPECT_THAT(problem_of("launch/x/a:b,tflops,inf,0"), HasSubstr("line 2: its value"));
  EXPECT_THAT(problem_of("launch/x/a:b,tflops,1,1"), HasSubstr("its origin"));
  EXPECT_THAT(problem_of("launch/x/a:b,tflops,1,-1"), HasSubstr("origin '-1'"));
  EXPECT_THAT(problem_of("launch/x/a:b,no_metric,1,0"), HasSubstr("no metric 'no_metric'"));
  EXPECT_THAT(problem_of("a:b,tflops,1,0"), HasSubstr("a:b"));
  EXPECT_THAT(problem_of("launch/x/a:b,tflops"), HasSubstr("line 2"));
  EXPECT_THAT(problem_of("launch/x/a:b,tflops,1,0\nlaunch/x/a:b,tflops,2,0"),
              HasSubstr("launch/x/a:b has tflops twice"));
}

TEST_F(PublishedFiles, OfOtherGpusCountWhereOneIsLost) {
  add_device("GPU-2");
  file("nothing");
  file(kHead + fmt::format("{},tflops,1.5,0\n", kProductOfSheets), "GPU-2");
  meta["published"]["files"].push_back({{"device", "GPU-1"}, {"file", "../session.json"}});
  meta["published"]["files"].push_back({{"device", "GPU-1"}, {"file", "gone.csv"}});
  const SessionData session = read();
  EXPECT_EQ(session.problems.size(), 3);
  ASSERT_EQ(session.cases.size(), 1);
  EXPECT_EQ(session.cases.begin()->first.device, "GPU-2");
}

TEST_F(PublishedFiles, AreMadeOfSoManyValuesAtMost) {
  const std::filesystem::path sheet = path / "sheet.csv";
  write_file(sheet,
             "gpu,benchmark,case,metric,unit,value,source,licence\n"
             "K40,others/x,size:1,tflops,TFLOP/s,1,a sheet,MIT\n"
             "K40,others/x,size:2,tflops,TFLOP/s,1,a sheet,MIT\n"
             "K40,others/x,size:3,tflops,TFLOP/s,1,a sheet,MIT\n");
  recording::PublishedTables three({}, 3), two({}, 2);
  EXPECT_NO_THROW(three.read(sheet));
  EXPECT_THAT(error_of([&] { two.read(sheet); }),
              HasSubstr("line 4, column value: these are more than 2 values"));
}

}  // namespace
}  // namespace launchgap
