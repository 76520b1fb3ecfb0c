#include "harness/measure/benchmark.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "tests/device/a_device.h"

namespace launchgap {
namespace {

using namespace testing;

class Nothing : public Case {
 public:
  explicit Nothing(const CaseContext&) {}
  void sample(Block&) override {}
  std::string method() const override { return "none"; }
};

DeviceFacts host() {
  DeviceFacts facts = a_device("", "", "host");
  facts.multiprocessors = 2;
  return facts;
}

DeviceFacts gpu() {
  return a_device("", "");
}

TEST(Benchmark, ItsCasesAreTheProductOfItsAxesInOrder) {
  Benchmark definition =
      benchmark("a/b").axis("x", "", {"1", "2"}).axis("y", "", {"p", "q"}).makes<Nothing>();
  std::vector<std::string> names;
  for (const CaseName& name : definition.cases(Profile::quick, host()))
    names.push_back(name.text());
  EXPECT_THAT(names, ElementsAre("a/b/x:1/y:p", "a/b/x:1/y:q", "a/b/x:2/y:p", "a/b/x:2/y:q"));
}

TEST(Benchmark, LeavesOutWhatIsNotWanted) {
  const Benchmark definition =
      benchmark("a/b")
          .axis("x", "", {"1", "2"})
          .axis("y", "", {"p", "q"})
          .only([](Profile profile, const DeviceFacts&, const CaseName& name) {
            return profile == Profile::full || name.at("x") == "1" || name.at("y") == "p";
          })
          .makes<Nothing>();
  std::vector<std::string> names;
  for (const CaseName& name : definition.cases(Profile::quick, host()))
    names.push_back(name.text());
  EXPECT_THAT(names, ElementsAre("a/b/x:1/y:p", "a/b/x:1/y:q", "a/b/x:2/y:p"));
  EXPECT_EQ(definition.cases(Profile::full, host()).size(), 4u);
}

TEST(Benchmark, ACaseWhoseSettingIsNotTheUsualOneHasASetupOfItsOwn) {
  const Benchmark definition = benchmark("launch/x")
                                   .process_axis(
                                       "wait",
                                       "",
                                       [](Profile, const DeviceFacts&) {
                                         return std::vector<std::string>{"spin", "block"};
                                       },
                                       "spin")
                                   .axis("by", "", {"event"})
                                   .makes<Nothing>();
  std::vector<std::string> process_configs;
  for (const CaseName& name : definition.cases(Profile::quick, gpu()))
    process_configs.push_back(definition.process_config_of(name).text());
  EXPECT_THAT(process_configs, ElementsAre("launch", "launch+wait=block"));
}

TEST(Benchmark, AFreshProcessTakesOneSample) {
  const Benchmark definition =
      benchmark("launch/x").in_fresh_processes([](Profile) { return 7; }).makes<Nothing>();
  const Sampling sampling = definition.sampling(Profile::full, {"launch/x", {}});
  EXPECT_EQ(sampling.blocks * sampling.samples, 1);
  EXPECT_EQ(definition.processes(Profile::quick), 7);
  EXPECT_FALSE(definition.traced({"launch/x", {}}));
}

// Or the process would have done something before.
TEST(AllBenchmarks, AFreshProcessHasNoOtherCase) {
  for (const Profile profile : {Profile::quick, Profile::full}) {
    for (const DeviceFacts& facts : {host(), gpu()}) {
      std::map<std::string, std::vector<bool>> by_process_config;
      for (const Benchmark& definition : all_benchmarks()) {
        for (const CaseName& name : definition.cases(profile, facts))
          by_process_config[definition.process_config_of(name).text()].push_back(
              definition.fresh_process);
      }
      for (const auto& [process_config, fresh] : by_process_config) {
        if (std::ranges::find(fresh, true) != fresh.end()) {
          EXPECT_EQ(fresh.size(), 1u) << process_config;
        }
      }
    }
  }
}

TEST(AllBenchmarks, HaveTheFourFamiliesAndAreInOrder) {
  std::vector<std::string> names;
  for (const Benchmark& definition : all_benchmarks()) names.push_back(definition.name);
  EXPECT_THAT(
      names,
      IsSupersetOf({"allocation/latency", "convolution/library", "launch/null", "matmul/library"}));
  EXPECT_TRUE(std::ranges::is_sorted(names));
}

TEST(AllBenchmarks, EveryCaseHasANameOfItsOwnMetricsSamplesAndAnEstimate) {
  for (const Profile profile : {Profile::quick, Profile::nightly, Profile::full}) {
    for (const DeviceFacts& facts : {host(), gpu()}) {
      std::set<std::string> names;
      for (const Benchmark& definition : all_benchmarks()) {
        EXPECT_FALSE(definition.question.empty());
        for (const Axis& axis : definition.axes)
          EXPECT_GT(axis.meaning.size(), 5u) << definition.name << " " << axis.name;
        for (const CaseName& name : definition.cases(profile, facts)) {
          EXPECT_TRUE(names.insert(name.text()).second) << name.text();
          EXPECT_EQ(CaseName::parse(name.text()), name);
          for (const std::string_view key : definition.metrics(name)) EXPECT_NO_THROW(metric(key));
          const Sampling sampling = definition.sampling(profile, name);
          EXPECT_GE(sampling.blocks, 1);
          EXPECT_GE(sampling.samples, 1);
          EXPECT_GT(definition.seconds(facts, name, sampling), 0);
        }
      }
    }
  }
}

std::set<std::string> axes_of(const Benchmark& definition) {
  std::set<std::string> names;
  for (const Axis& axis : definition.axes) names.insert(axis.name);
  return names;
}

/// Every case of every profile on either kind of device.
std::vector<CaseName> all_cases(const Benchmark& definition) {
  std::vector<CaseName> all;
  for (const Profile profile : {Profile::quick, Profile::nightly, Profile::full}) {
    for (const DeviceFacts& facts : {host(), gpu()})
      std::ranges::copy(definition.cases(profile, facts), std::back_inserter(all));
  }
  return all;
}

bool has(const CaseName& name, const std::pair<std::string, std::string>& param) {
  return std::ranges::find(name.params, param) != name.params.end();
}

// A line that names nothing would be missing without a word.
TEST(AllBenchmarks, FiguresNameCasesAndMetricsThatThereAre) {
  for (const Benchmark& definition : all_benchmarks()) {
    const std::vector<CaseName> cases = all_cases(definition);
    std::set<std::string> captions;
    for (const Figure& figure : definition.figures) {
      EXPECT_TRUE(captions.insert(figure.caption).second)
          << definition.name << ": " << figure.caption;
      std::set<std::string> labels;
      EXPECT_TRUE(figure.axis.empty() || axes_of(definition).contains(figure.axis))
          << definition.name << ": " << figure.axis;
      for (const FigureLine& line : figure.lines) {
        EXPECT_TRUE(labels.insert(line.label).second) << figure.caption << ": " << line.label;
        const auto named = [&](const CaseName& name) {
          const auto metrics = definition.metrics(name);
          return std::ranges::find(metrics, line.metric) != metrics.end() &&
                 std::ranges::all_of(line.params, [&](const auto& param) {
                   return param.second.starts_with('@') ? axes_of(definition).contains(param.first)
                                                        : has(name, param);
                 });
        };
        EXPECT_TRUE(std::ranges::any_of(cases, named))
            << definition.name << ": " << figure.caption << ", " << line.label;
      }
    }
  }
}

TEST(AllBenchmarks, HeadlinesNameCasesAndMetricsThatThereAre) {
  int headlines = 0;
  for (const Benchmark& definition : all_benchmarks()) {
    const std::vector<CaseName> cases = all_cases(definition);
    for (const Headline& headline : definition.headlines) {
      ++headlines;
      EXPECT_TRUE(std::ranges::any_of(cases, [&](const CaseName& name) {
        const auto metrics = definition.metrics(name);
        return name.params_text().find(headline.params) != std::string::npos &&
               std::ranges::find(metrics, headline.metric) != metrics.end();
      })) << headline.heading;
    }
  }
  EXPECT_GT(headlines, 3);
}

TEST(AllBenchmarks, OfTheListsOfWhatIsReadFirstAreThere) {
  std::set<std::size_t> figures, advice, headlines;
  for (const Benchmark& definition : all_benchmarks()) {
    if (!definition.figures.empty()) figures.insert(place_of_figures(definition));
    if (definition.advice) advice.insert(place_of_advice(definition));
    for (const Headline& headline : definition.headlines) headlines.insert(place_of(headline));
  }
  for (const auto& places : {figures, advice, headlines}) {
    EXPECT_EQ(*places.rbegin(), places.size() - 1) << "an entry of a list is no benchmark's";
    EXPECT_GT(places.size(), 7u);
  }
}

TEST(AllBenchmarks, AreFoundByCase) {
  EXPECT_EQ(benchmark_of(CaseName::parse("launch/null/mode:idle")).name, "launch/null");
  EXPECT_THROW(benchmark_of(CaseName::parse("launch/nothing")), Error);
}

}  // namespace
}  // namespace launchgap
