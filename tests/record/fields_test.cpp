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
  ProcessConfig process_config;
  CpuList cpus;
  std::vector<Inner> inner;
  std::map<std::string, double> readings;

  static void fields(auto& self, auto&& field) {
    field("count", self.count);
    field("share", self.share);
    field.optional("note", self.note);
    field.natural("attempt", self.attempt);
    field("status", self.status);
    field("process_config", self.process_config);
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
          {"process_config", "launch+wait=block"},
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
  EXPECT_EQ(outer.process_config.wait(), WaitMode::block);
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
  for (const char* key : {"count", "status", "process_config", "cpus", "inner", "readings"}) {
    Json json = valid();
    json.erase(key);
    EXPECT_THAT(refusal(json), HasSubstr(fmt::format("\"{}\" is missing", key)));
  }
  for (const char* key :
       {"count", "share", "note", "attempt", "process_config", "inner", "readings"}) {
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

TEST(Fields, HaveTheNamesOfNowInFilesOfBefore) {
  const Json before = {{"session_id", "s"},
                       {"device", Json::object()},
                       {"arm", "plain"},
                       {"setup", "launch+trace=kernels"}};
  const RunRecord run = fields_from_json<RunRecord>(before);
  EXPECT_EQ(run.process_config.text(), "launch+trace_level=kernels");
  EXPECT_EQ(run.process_config.observer(), TraceLevel::kernels);
  const Json now = fields_to_json(run);
  EXPECT_EQ(now.at("process_config"), "launch+trace_level=kernels");
  EXPECT_FALSE(now.contains("setup"));
}

enum class Colour { red, blue };

struct Part {
  int weight = 0;
  static void fields(auto& self, auto&& field) { field("weight", self.weight, at_least(1)); }
};

/// Whatever the values are, and what they are together.
struct Bounded {
  double share = 0.5;
  std::vector<double> rates = {1};
  std::string name = "none";
  Colour colour = Colour::red;
  std::optional<Part> part = Part{7};
  std::vector<Part> parts;
  int total = 0;

  void complete() {
    for (const Part& each : parts) total += each.weight;
    if (total > 100) throw Error("the parts weigh more than 100");
  }
  static void fields(auto& self, auto&& field) {
    field.optional("share", self.share, between(0, 1));
    field.optional("rates", self.rates, above(0));
    field.optional("name", self.name, kNotEmpty);
    field.optional(
        "colour", self.colour, Names<Colour>{{{"red", Colour::red}, {"blue", Colour::blue}}});
    field.optional("part", self.part);
    field.optional("parts", self.parts);
  }
};

TEST(Fields, ThatHaveRulesAreReadAndWrittenByThem) {
  const Json json = {{"share", 1},
                     {"rates", {0.1, 2}},
                     {"name", "x"},
                     {"colour", "blue"},
                     {"part", nullptr},
                     {"parts", {{{"weight", 1}}, {{"weight", 99}}}}};
  const auto bounded = fields_from_json<Bounded>(json, OtherKeys::refused);
  EXPECT_EQ(bounded.colour, Colour::blue);
  EXPECT_EQ(bounded.part, std::nullopt) << "null is none";
  EXPECT_EQ(bounded.total, 100);
  EXPECT_EQ(fields_to_json(bounded), json);
  EXPECT_EQ(fields_from_json<Bounded>(Json::object()).part->weight, 7) << "and nothing the default";
}

TEST(Fields, ThatBreakARuleAreNamedWithTheirPlace) {
  const std::pair<Json, const char*> cases[] = {
      {{{"share", 1.5}}, R"("share" is 1.5, and must be from 0 to 1)"},
      {{{"share", -0.5}}, R"("share" is -0.5, and must be from 0 to 1)"},
      {{{"rates", {1, 0}}}, R"("rates" is [1,0], and must be above 0)"},
      {{{"name", ""}}, R"("name" is "", and must be not empty)"},
      {{{"colour", "green"}}, R"("colour" is "green", and must be one of "red", "blue")"},
      {{{"part", {{"weight", 0}}}}, R"("part": "weight" is 0, and must be at least 1)"},
      {{{"parts", {{{"weight", 1}}, {{"weight", "x"}}}}}, R"("parts"[1]: "weight" is a string)"},
      {{{"parts", {{{"size", 1}}}}}, R"("parts"[0]: "size" is no key here; known here: weight)"},
      {{{"parts", {{{"weight", 101}}}}}, "the parts weigh more than 100"},
  };
  for (const auto& [json, expected] : cases) {
    try {
      fields_from_json<Bounded>(json, OtherKeys::refused);
      ADD_FAILURE() << json << " passed";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
  EXPECT_NO_THROW(fields_from_json<Bounded>({{"size", 1}})) << "unless they are refused";
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
