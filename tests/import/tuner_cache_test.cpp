#include "harness/import/tuner_cache.h"

#include <cmath>

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;

const std::string kHead =
    R"({"device_name":"RTX 3090","kernel_name":"Xgemm","problem_size":[64,32],)"
    "\n"
    R"("tune_params_keys":["A","B"],"tune_params":{"A":[1,2],"B":[1]},"cache":{)"
    "\n";

struct TunerCaches : TextFile {
  /// What is said of a cache that has these configurations.
  std::string refused(const std::string& cache) const {
    return error_of([&] { read_tuner_cache(file(kHead + cache + "}}")); });
  }
};

TEST_F(TunerCaches, HaveATimeOrAFailurePerConfiguration) {
  const auto path =
      file(kHead + R"("1,1":{"A":1,"B":1,"time":2.0,"times":[1.9,2.1],"other":[1,[2]]},
    "2,1":{"time":"RuntimeFailedConfig","times":[1.0]},"3,1":{"time":1e20},"4,1":{"time":5}}})");
  ASSERT_TRUE(is_tuner_cache(path));
  const TunerCache cache = read_tuner_cache(path);
  EXPECT_EQ(cache.gpu, "RTX 3090");
  EXPECT_EQ(cache.kernel, "Xgemm");
  EXPECT_EQ(cache.problem, "64x32");
  EXPECT_THAT(cache.parameters, ElementsAre("A", "B"));
  ASSERT_EQ(cache.configurations.size(), 4);
  const TunedConfiguration& first = cache.configurations[0];
  EXPECT_EQ(first.values, "1,1");
  EXPECT_DOUBLE_EQ(first.ns, 2e6);
  EXPECT_EQ(first.runs, 2);
  EXPECT_NEAR(first.log_sd, std::log(2.1 / 1.9) / std::sqrt(2), 1e-12);
  EXPECT_EQ(cache.configurations[1].failure, "RuntimeFailedConfig");
  EXPECT_EQ(cache.configurations[2].failure, "failed") << "as older tuners write it";
  EXPECT_DOUBLE_EQ(cache.configurations[3].ns, 5e6);
}

TEST_F(TunerCaches, CountRunsOfEachConfigurationByThemselves) {
  const TunerCache cache = read_tuner_cache(
      file(kHead + R"("1":{"time":1,"times":[1,1,1000]},"2":{"times":[2,"x",null,8,4],"time":9},)"
                   R"("3":{"time":3,"times":[3]},"4":{"time":4,"times":[4,4]},"5":{"time":5}}})"));
  ASSERT_EQ(cache.configurations.size(), 5u);
  EXPECT_EQ(cache.configurations[1].runs, 3);
  EXPECT_NEAR(cache.configurations[1].log_sd, std::log(2), 1e-12);
  EXPECT_EQ(cache.configurations[2].runs, 1);
  EXPECT_EQ(cache.configurations[2].log_sd, 0);
  EXPECT_EQ(cache.configurations[3].runs, 2);
  EXPECT_EQ(cache.configurations[3].log_sd, 0);
  EXPECT_EQ(cache.configurations[4].runs, 0);
}

TEST_F(TunerCaches, NameTheFailureAsTheTunerDoes) {
  const std::pair<const char*, const char*> cases[] = {{"\"Failed\"", "Failed"},
                                                       {"\"\"", "failed"},
                                                       {"null", "null"},
                                                       {"true", "true"},
                                                       {"false", "false"},
                                                       {"1e20", "failed"},
                                                       {"9e19", ""}};
  for (const auto& [time, failure] : cases) {
    const TunerCache cache =
        read_tuner_cache(file(kHead + fmt::format(R"("1,1":{{"time":{}}}}}}})", time)));
    EXPECT_EQ(cache.configurations.at(0).failure, failure);
    EXPECT_EQ(cache.configurations.at(0).ns, *failure ? 0 : 9e25);
  }
}

TEST_F(TunerCaches, HaveWhatStandsInItsPlaceAlone) {
  const TunerCache cache = read_tuner_cache(file(
      R"({"x":{"device_name":"no","kernel_name":"no","problem_size":[1],"cache":{"0":{"time":1}}},)"
      R"("device_name":"A","kernel_name":"k","problem_size":"64 x 32","y":[[["no"]],"no"],)"
      R"("tune_params_keys":["P",["no"]],"device_name_2":"no",)"
      R"("cache":{"1":{"more":{"time":7,"times":[7]},"time":1,"list":[[{"time":7}]],"times":[[7]]}},)"
      R"("device":{"device_name":"no"},"kernel":[{"kernel_name":"no"}],"last":"no"})"));
  EXPECT_EQ(cache.gpu, "A");
  EXPECT_EQ(cache.kernel, "k");
  EXPECT_EQ(cache.problem, "64 x 32");
  EXPECT_THAT(cache.parameters, ElementsAre("P"));
  ASSERT_EQ(cache.configurations.size(), 1u);
  EXPECT_EQ(cache.configurations[0].ns, 1e6);
  EXPECT_EQ(cache.configurations[0].runs, 0);
  EXPECT_THAT(refused(R"("1":{"time":[5]})"), HasSubstr("configuration 1 has no time"));
}

TEST_F(TunerCaches, AreNestedToALimit) {
  const auto nested = [](std::size_t depth) {
    return R"("1":{"time":1,"x":)" + std::string(depth - 3, '[') + std::string(depth - 3, ']') +
           "}";
  };
  EXPECT_EQ(read_tuner_cache(file(kHead + nested(100) + "}}")).configurations.size(), 1u);
  EXPECT_THAT(refused(nested(101)), HasSubstr("it is nested more than 100 deep"));
}

TEST_F(TunerCaches, AreRefusedWithLineAndColumn) {
  EXPECT_THAT(
      refused(R"("1,1":{"time":0})"),
      AllOf(HasSubstr("file: line 3, column "),
            HasSubstr("the time of configuration 1,1 is '0', and no number of ms above 0")));
  for (const char* time : {"-1", "NaN", "Infinity", "-Infinity"})
    EXPECT_THAT(refused(fmt::format(R"("1,1":{{"time":{}}})", time)), HasSubstr("no number of ms"))
        << time;
  EXPECT_THAT(refused(R"("1,1":{"time":1e999})"), HasSubstr("Number too big"));
  EXPECT_THAT(refused(R"("1,1":{"time":1,"times":[1,0]})"), HasSubstr("is '0'"));
  EXPECT_THAT(refused(R"("1,1":{"time":1},"1,1":{"time":2})"), HasSubstr("1,1 is there twice"));
  EXPECT_THAT(refused(R"("1,1":{"A":1})"), HasSubstr("1,1 has no time"));
  EXPECT_THAT(refused(R"("1,1":7)"), HasSubstr("a configuration without its parts"));
  EXPECT_THAT(refused(R"("1,1":[7])"), HasSubstr("a configuration that is a list"));
  EXPECT_THAT(refused(""), HasSubstr("no configuration is in it"));
  EXPECT_THAT(refused("\"1,1\":{\"time\":1},\n\"\xFF\":{\"time\":1}"),
              HasSubstr("line 4, column "));
  for (const char* const name : {"1\\u0000", "1\\u001f", "1\\u007f"})
    EXPECT_THAT(refused(fmt::format(R"("{}":{{"time":1}})", name)),
                HasSubstr("control characters"));
  EXPECT_THAT(refused(R"("":{"time":1})"), HasSubstr("a configuration without a name"));
  EXPECT_THAT(refused(R"("1,1":{"time":x})"), Not(HasSubstr("An interrupted tuning")));
  const std::string digits(40, '0');
  EXPECT_THAT(refused(R"("1":{"time":0.)" + digits.substr(2) + "}"),
              HasSubstr("is '0." + digits.substr(2) + "'"));
  EXPECT_THAT(refused(R"("1":{"time":0.)" + digits.substr(1) + "}"),
              HasSubstr("is '0." + digits.substr(2) + "…'"));
  EXPECT_THAT(refused(fmt::format(R"("{}":{{"time":1}})", std::string(301, '1'))),
              HasSubstr("a text of 301 characters"));
}

TEST_F(TunerCaches, MayBeAsLongAndAsManyAsTheirLimits) {
  const auto with_parameters = [&](std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("\"P{}\"", i));
    return file(fmt::format(
        R"({{"device_name":"A","kernel_name":"k","problem_size":[64],"tune_params_keys":[{}],)"
        R"("tune_params":{{}},"cache":{{"{}":{{"time":1}}}}}})",
        fmt::join(names, ","),
        std::string(300, '1')));
  };
  EXPECT_THAT(read_tuner_cache(with_parameters(64)).parameters, SizeIs(64));
  EXPECT_THAT(error_of([&] { read_tuner_cache(with_parameters(65)); }),
              HasSubstr("more than 64 parameters"));
}

TEST_F(TunerCaches, ThatAreCutOffSaySo) {
  const std::string whole = kHead + R"("1,1":{"time":1},"2,1":{"time":2}}})";
  for (std::size_t length = kHead.size(); length < whole.size(); ++length) {
    EXPECT_THAT(error_of([&] { read_tuner_cache(file(whole.substr(0, length))); }),
                AllOf(HasSubstr("it is no whole JSON"),
                      EndsWith(" An interrupted tuning leaves a file without its end.")))
        << length;
  }
}

TEST_F(TunerCaches, AreNoOtherJson) {
  EXPECT_FALSE(is_tuner_cache(file(R"({"traceEvents":[]})")));
  EXPECT_FALSE(is_tuner_cache(file("")));
  EXPECT_FALSE(is_tuner_cache(file("gpu,benchmark\n")));
  EXPECT_FALSE(is_tuner_cache("/nowhere"));
  EXPECT_THAT(error_of([&] {
                read_tuner_cache(file(R"({"kernel_name":"a","device_name":"b","problem_size":1})"));
              }),
              HasSubstr("it has no tune_params_keys"));
}

TEST_F(TunerCaches, LackNothingThatIsAskedFor) {
  const std::pair<const char*, const char*> parts[] = {{"device_name", R"("A")"},
                                                       {"kernel_name", R"("k")"},
                                                       {"tune_params_keys", R"(["P"])"},
                                                       {"cache", R"({"1":{"time":1}})"}};
  for (const auto& [missing, value] : parts) {
    std::string text = R"({"problem_size":[1])";
    for (const auto& [key, given] : parts)
      text += fmt::format(R"(,"{}":{})", key == missing ? "other" : key, given);
    const std::filesystem::path path = file(text + "}");
    EXPECT_EQ(error_of([&] { read_tuner_cache(path); }),
              fmt::format("{}: it has no {}", path.string(), missing));
  }
}

TEST_F(TunerCaches, AreKnownByTheirFirst4096Bytes) {
  const std::string kernel = R"("kernel_name":"k")", keys = R"("tune_params_keys")",
                    problem = R"("problem_size")";
  EXPECT_TRUE(is_tuner_cache(file(" \t\r\n{" + kernel + "," + keys)));
  EXPECT_TRUE(is_tuner_cache(file("{" + kernel + "," + problem)));
  EXPECT_FALSE(is_tuner_cache(file("{" + kernel)));
  EXPECT_FALSE(is_tuner_cache(file("{" + keys + "," + problem)));
  EXPECT_FALSE(is_tuner_cache(file("[" + kernel + "," + keys)));
  EXPECT_FALSE(is_tuner_cache(file("{" + kernel + "," + keys + R"(,"traceEvents")")));
  const auto at_end = [&](std::size_t size) {
    const std::string begin = "{" + kernel;
    return begin + std::string(size - begin.size() - keys.size(), ' ') + keys + "more";
  };
  EXPECT_TRUE(is_tuner_cache(file(at_end(4096))));
  EXPECT_FALSE(is_tuner_cache(file(at_end(4097))));
}

}  // namespace
}  // namespace launchgap::recording
