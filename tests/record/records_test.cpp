#include <cmath>
#include <fstream>

#include <gmock/gmock.h>

#include "harness/core/output_file.h"
#include "harness/record/fields.h"
#include "harness/record/reader.h"
#include "harness/record/writer.h"
#include "tests/device/a_device.h"
#include "tests/error_of.h"

namespace launchgap {
namespace {

using namespace testing;

struct Records : ::testing::Test {
  void append(const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  }

  std::vector<std::string> read() {
    blocks.clear();
    others.clear();
    return read_records(path,
                        {[this](SampleBlock&& block) { blocks.push_back(std::move(block)); },
                         [this](const Json& record) { others.push_back(record); }});
  }

  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "records.jsonl";
  std::vector<SampleBlock> blocks;
  std::vector<Json> others;
};

Block two_samples() {
  Block block({"api_ns", "roundtrip_ns"}, 2);
  block.restart();
  block.keep(block.begin_ns() + 5, 2310, 6710.25);
  block.keep(block.begin_ns() + 7000, Block::kMissing, 6688);
  block.close();
  return block;
}

TEST_F(Records, SamplesAreOneLineOfTheDocumentedShape) {
  RecordWriter::create(path).write_samples("launch/null/api:driver/mode:idle", 3, 6, two_samples());
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  const Json json = Json::parse(line);
  EXPECT_EQ(json["schema"], "launchgap/1");
  EXPECT_EQ(json["record"], "samples");
  EXPECT_EQ(json["block"], 3);
  EXPECT_EQ(json["first"], 6);
  EXPECT_THAT(
      line,
      HasSubstr(
          R"("t0_ns":[5,7000],"metrics":["api_ns","roundtrip_ns"],"values":[[2310,null],[6710.250,6688]]})"));
}

TEST(ParseJson, IsLimitedInDepth) {
  EXPECT_NO_THROW(parse_json(std::string(100, '[') + std::string(100, ']')));
  EXPECT_NO_THROW(parse_json(R"(["\"[[[[[", ")" + std::string(200, '{') + "\"]"));
  for (const std::string& text :
       {std::string(101, '['), R"({"a":"\\"})" + std::string(200, '{'), std::string("{")})
    EXPECT_THROW(parse_json(text), Error) << text;
}

TEST(Field, IsOfItsTypeAndRangeOrAnErrorThatNamesIt) {
  const Json json = {
      {"small", 7}, {"large", 4294967296}, {"text", "x"}, {"null", nullptr}, {"list", {1, "x"}}};
  EXPECT_EQ(field<int>(json, "small"), 7);
  EXPECT_EQ(field<double>(json, "small"), 7.0);
  EXPECT_EQ(field<int>(json, "null", 3), 3);
  EXPECT_EQ(optional_field<int>(json, "absent"), std::nullopt);
  EXPECT_THAT(error_of([&] { field<int>(json, "large"); }), HasSubstr("\"large\" is 4294967296"));
  EXPECT_THAT(error_of([&] { field<int>(json, "text"); }),
              HasSubstr("\"text\" is a string, and must be an integer"));
  EXPECT_THAT(error_of([&] { field<std::string>(json, "absent"); }),
              HasSubstr("\"absent\" is missing"));
  EXPECT_THAT(error_of([&] { field<std::vector<int>>(json, "list"); }),
              HasSubstr("\"list\" is an array"));
  EXPECT_THAT(error_of([&] { field<int>(Json::array(), "x"); }), HasSubstr("no object"));
}

TEST(Path, OfAnyBytesPassesThroughJson) {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const Json json = text_of_path(bytes);
  EXPECT_EQ(path_of_text(Json::parse(json.dump()).get<std::string>()).native(), bytes);
  EXPECT_EQ(text_of_path("/plain/path"), "/plain/path");
}

TEST_F(Records, ReadBackAsTheyWereWritten) {
  {
    RecordWriter writer = RecordWriter::create(path);
    Json run = new_record("run");
    run["text"] = "comma, \"quote\", \n line, \xFF byte";
    writer.write(run);
    writer.write_samples("launch/null", 0, 0, two_samples());
  }
  EXPECT_THAT(read(), IsEmpty());
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0]["record"], "run");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_THAT(blocks[0].metrics, ElementsAre("api_ns", "roundtrip_ns"));
  EXPECT_THAT(blocks[0].values[1], ElementsAre(6710.25, 6688));
  EXPECT_TRUE(std::isnan(blocks[0].values[0][1]));
}

TEST_F(Records, ATornLastLineIsIgnoredWhereverItIsTorn) {
  RecordWriter::create(path).write_samples("launch/null", 0, 0, two_samples());
  RecordWriter::reopen(path).write_samples("launch/null", 1, 2, two_samples());
  const auto whole = std::filesystem::file_size(path);
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::size_t first = text.find('\n') + 1;
  for (std::size_t size = first; size < whole; ++size) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text.substr(0, size);
    ASSERT_THAT(read(), IsEmpty()) << size;
    ASSERT_EQ(blocks.size(), 1u) << size;
  }
}

TEST_F(Records, ReopeningCutsOffATornLineAndGoesOn) {
  RecordWriter::create(path).write(new_record("run"));
  append(R"({"schema":"launchgap/1","record":"samp)");
  RecordWriter::reopen(path).write(new_record("end"));
  EXPECT_THAT(read(), IsEmpty());
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[1]["record"], "end");
}

TEST_F(Records, AGarbledLineIsNamedAndTheRestIsRead) {
  RecordWriter::create(path).write(new_record("run"));
  append("{not json}\n{\"schema\":\"launchgap/1\"}\n[1]\n");
  append(
      R"({"schema":"launchgap/1","record":"samples","case":"a","block":0,"first":0,"begin_ns":0,"end_ns":1,"t0_ns":[0],"metrics":["api_ns"],"values":[[1,2]]})");
  append("\n");
  RecordWriter::reopen(path).write(new_record("end"));
  const auto problems = read();
  ASSERT_EQ(problems.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_THAT(problems[i], HasSubstr("line " + std::to_string(i + 2) + ": not a record"));
  EXPECT_EQ(others.size(), 2u);
  EXPECT_THAT(blocks, IsEmpty());
}

TEST_F(Records, ANewerSchemaIsNotGuessedAt) {
  append(
      "{\"schema\":\"launchgap/2\",\"record\":\"run\"}\n{\"schema\":\"launchgap/"
      "1\",\"record\":\"end\"}\n");
  EXPECT_THAT(read(), ElementsAre(HasSubstr("schema launchgap/2 is newer than launchgap/1")));
  EXPECT_THAT(others, IsEmpty());
}

TEST_F(Records, AnExistingFileIsNotWrittenOver) {
  append("precious\n");
  EXPECT_THROW(RecordWriter::create(path), Error);
}

TEST(DeviceFactsJson, GoBothWaysAndLeaveOutWhatIsUnknown) {
  DeviceFacts facts = a_device("GPU-1", "A, \"GPU\"");
  facts.compute_capability = "9.0";
  facts.details["ecc"] = "on";
  facts.usable = false;
  facts.reason = "because";
  const Json json = fields_to_json(facts);
  EXPECT_FALSE(json.contains("memory_bytes"));
  const DeviceFacts back = fields_from_json<DeviceFacts>(json);
  EXPECT_EQ(back.name, facts.name);
  EXPECT_EQ(back.compute_capability, facts.compute_capability);
  EXPECT_EQ(back.details, facts.details);
  EXPECT_FALSE(back.memory_bytes.has_value());
  EXPECT_FALSE(back.usable);
}

TEST(Maybe, IsNothingForAbsentNullAndOfAnotherType) {
  const Json json = {{"text", "a"}, {"null", nullptr}};
  EXPECT_EQ(maybe<std::string>(json, "text"), "a");
  EXPECT_FALSE(maybe<int>(json, "text"));
  EXPECT_FALSE(maybe<int>(json, "null"));
  EXPECT_FALSE(maybe<int>(json, "absent"));
  EXPECT_FALSE(maybe<int>(Json(3), "absent"));
}

}  // namespace
}  // namespace launchgap
