#include "harness/record/fields.h"

#include <gmock/gmock.h>

#include "harness/record/records.h"
#include "tests/error_of.h"

namespace launchgap {
namespace {

using ::testing::HasSubstr;

struct Inner {
  std::string word;
  static void fields(auto& self, auto&& field) { field("word", self.word); }
};

struct Outer {
  int count = 0;
  std::optional<double> share;
  std::string note = "none";
  int attempt = 0;
  Status status = Status::ok;
  ProcessConfig setup;
  CpuList cpus;
  std::vector<Inner> inner;
  std::map<std::string, double> readings;

  static void fields(auto& self, auto&& field) {
    field("count", self.count);
    field("share", self.share);
    field.optional("note", self.note);
    field.natural("attempt", self.attempt);
    field("status", self.status);
    field("setup", self.setup);
    field("cpus", self.cpus);
    field("inner", self.inner);
    field("readings", self.readings);
  }
};

Json valid() {
  return {{"count", 3},
          {"share", 0.5},
          {"note", "some"},
          {"attempt", 2},
          {"status", "failed"},
          {"setup", "launch+wait=block"},
          {"cpus", "0-3,8"},
          {"inner", {{{"word", "one"}}, {{"word", "two"}}}},
          {"readings", {{"sm_clock_mhz", 1410.0}}}};
}

std::string refusal(const Json& json) {
  return error_of([&] { fields_from_json<Outer>(json); });
}

TEST(Fields, AreReadAndWrittenByOneDescription) {
  const auto outer = fields_from_json<Outer>(valid());
  EXPECT_EQ(outer.count, 3);
  EXPECT_EQ(outer.share, 0.5);
  EXPECT_EQ(outer.note, "some");
  EXPECT_EQ(outer.attempt, 2);
  EXPECT_EQ(outer.status, Status::failed);
  EXPECT_EQ(outer.setup.wait(), WaitMode::block);
  EXPECT_EQ(outer.cpus, (CpuList{0, 1, 2, 3, 8}));
  ASSERT_EQ(outer.inner.size(), 2u);
  EXPECT_EQ(outer.inner[1].word, "two");
  EXPECT_EQ(fields_to_json(outer), valid());
}

TEST(Fields, ThatAreOptionalAreLeftOut) {
  Json json = valid();
  json.erase("share");
  json["note"] = nullptr;
  json.erase("attempt");
  const auto outer = fields_from_json<Outer>(json);
  EXPECT_EQ(outer.share, std::nullopt);
  EXPECT_EQ(outer.note, "none");
  EXPECT_EQ(outer.attempt, 0);
  EXPECT_FALSE(fields_to_json(outer).contains("share"));
}

TEST(Fields, ThatAreWrongAreNamed) {
  for (const char* key : {"count", "status", "setup", "cpus", "inner", "readings"}) {
    Json json = valid();
    json.erase(key);
    EXPECT_THAT(refusal(json), HasSubstr(fmt::format("\"{}\" is missing", key)));
  }
  for (const char* key : {"count", "share", "note", "attempt", "setup", "inner", "readings"}) {
    Json json = valid();
    json[key] = true;
    EXPECT_THAT(refusal(json), HasSubstr(key));
  }
  Json json = valid();
  json["attempt"] = -1;
  EXPECT_THAT(refusal(json), HasSubstr("attempt"));
  json = valid();
  json["inner"][1]["word"] = 2;
  EXPECT_THAT(refusal(json), HasSubstr("word"));
  json = valid();
  json["status"] = "splendid";
  EXPECT_THAT(refusal(json), HasSubstr("splendid"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("no object"));
}

TEST(Record, BeginsWithSchemaAndKind) {
  SummaryRecord summary;
  summary.case_name = "launch/null";
  summary.status = Status::skipped;
  const Json json = record_to_json(summary);
  EXPECT_EQ(json.dump(),
            R"({"schema":"launchgap/1","record":"summary","case":"launch/null",)"
            R"("status":"skipped","reason":""})");
}

}  // namespace
}  // namespace launchgap
