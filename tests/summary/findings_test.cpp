#include "harness/summary/findings.h"

#include <cmath>
#include <fstream>
#include <map>
#include <random>

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "harness/summary/all_tables.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

/// Sessions with runs whose samples are drawn.
struct Findings : WrittenSession {
  /// `n` lognormal samples around `median`.
  std::vector<double> drawn(std::size_t n, double median, double sigma) {
    std::normal_distribution<> normal;
    std::vector<double> values(n);
    for (double& value : values) value = median * std::exp(sigma * normal(random_));
    return values;
  }

  void run(const std::string& device,
           const std::string& arm,
           const std::string& process_config,
           int replicate,
           double median,
           std::size_t n = 500) {
    run_of_case(begin_run(device, arm, process_config, replicate),
                kIdle,
                {{"api_ns", drawn(n, median, 0.03)}});
  }

  static void write_details(const SessionData& session, const std::filesystem::path& folder) {
    const std::vector<SummaryRow> rows = summarise(session);
    write_tables({session, rows, SlowSamples(session, rows)}, TableUse::details, folder);
  }

  double run_factor(double sd) { return std::exp(std::normal_distribution<>(0, sd)(random_)); }

  std::mt19937_64 random_{7};
};

TEST_F(Findings, NameTheDeviceThatIsSlowerThanItsKindAndNoOther) {
  const std::vector<std::string> devices = {"GPU-1", "GPU-2", "GPU-3", "GPU-4"};
  for (const std::string& device : devices) {
    if (device != "GPU-1") add_device(device);
    for (int replicate = 0; replicate < 5; ++replicate)
      run(device,
          "plain",
          "launch",
          replicate,
          (device == "GPU-3" ? 1.1 : 1) * 2000 * run_factor(0.01));
  }
  {  // the first of all rows, and one without values
    RecordWriter writer = begin_run("GPU-1", "plain", "launch", 5);
    summary(writer, "launch/args/bytes:4/mode:idle", "failed", "it crashed");
    end(writer);
  }
  const SessionData session = read();
  const auto rows = summarise(session);
  ASSERT_THAT(rows.front().run_medians, IsEmpty());
  const auto odd = outlier_devices(session, rows);
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].device, "GPU-3");
  EXPECT_NEAR(odd[0].ratio, 1.1, 0.02);
  EXPECT_LT(odd[0].interval.low, 1.1);

  // Of the variance of a device and of its kind together, the part at each level.
  std::map<std::string, double> variance, share;
  const auto all = variations(session, rows);
  for (const Variation& own : all) {
    variance[own.scope] += std::log1p(own.cv.value * own.cv.value);
    share[own.scope] += own.share;
    if (own.level != VariationLevel::devices) continue;
    EXPECT_EQ(own.scope, "Some GPU");
    EXPECT_EQ(own.groups, 4u);
    EXPECT_NEAR(own.cv.value, 0.05, 0.02);
  }
  const double of_kind = variance["Some GPU"];
  double total = 0;
  for (const std::string& device : devices) {
    EXPECT_NEAR(share[device], 1 - of_kind / (variance[device] + of_kind), 1e-12);
    total += variance[device] + of_kind;
  }
  EXPECT_NEAR(share["Some GPU"], of_kind / (total / 4), 1e-12);
  EXPECT_GT(share["Some GPU"], 0.5);
}

TEST_F(Findings, SayNothingOfDevicesThatAreAlike) {
  add_device("GPU-2");
  for (const std::string device : {"GPU-1", "GPU-2"}) {
    for (int replicate = 0; replicate < 5; ++replicate)
      run(device, "plain", "launch", replicate, 2000 * run_factor(0.01));
  }
  const SessionData session = read();
  EXPECT_THAT(outlier_devices(session, summarise(session)), IsEmpty());
}

TEST_F(Findings, MeasureTheObserverEffectOfEachLevelWithAnInterval) {
  for (int replicate = 0; replicate < 8; ++replicate) {
    run("GPU-1", "plain", "launch+trace_level=none", replicate, 2000 * run_factor(0.01));
    run("GPU-1", "traced", "launch+trace_level=launches", replicate, 2300 * run_factor(0.01));
    run("GPU-1", "traced", "launch+trace_level=kernels", replicate, 2700 * run_factor(0.01));
    run("GPU-1", "traced", "launch+trace_level=all", replicate, 3000 * run_factor(0.01));
  }
  // What else a process measures may make its launches slower: it is not compared.
  for (int replicate = 0; replicate < 8; ++replicate) {
    run("GPU-1", "plain", "launch", replicate, 5000 * run_factor(0.01));
    run("GPU-1", "traced", "launch", replicate, 9000 * run_factor(0.01));
  }
  const SessionData session = read();
  const auto effects = observer_effects(summarise(session));
  ASSERT_EQ(effects.size(), 3u);
  const double expected[] = {300, 700, 1000};
  constexpr TraceLevel levels[] = {TraceLevel::launches, TraceLevel::kernels, TraceLevel::all};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(effects[i].level, levels[i]);
    ASSERT_TRUE(effects[i].effect.has_value());
    EXPECT_LT(effects[i].effect->interval.low, expected[i]);
    EXPECT_GT(effects[i].effect->interval.high, expected[i]);
    EXPECT_LT(effects[i].effect->interval.high - effects[i].effect->interval.low, 100);
  }
}

TEST_F(Findings, OlderRecordsCompareTheWholeFamily) {
  for (int replicate = 0; replicate < 4; ++replicate) {
    run("GPU-1", "plain", "launch", replicate, 2000 * run_factor(0.01));
    run("GPU-1", "traced", "launch+trace_level=launches", replicate, 2300 * run_factor(0.01));
    run("GPU-1", "traced", "launch", replicate, 3000 * run_factor(0.01));
  }
  const SessionData session = read();
  const auto effects = observer_effects(summarise(session));
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[0].level, TraceLevel::launches);
  EXPECT_EQ(effects[1].level, TraceLevel::all);
  EXPECT_NEAR(effects[1].traced - effects[1].plain, 1000, 100);
}

TEST_F(Findings, OneTracedRunHasAnEffectWithoutAnInterval) {
  run("GPU-1", "plain", "launch+trace_level=none", 0, 2000);
  run("GPU-1", "traced", "launch+trace_level=launches", 0, 2300);
  const SessionData session = read();
  const auto effects = observer_effects(summarise(session));
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_FALSE(effects[0].effect.has_value());
}

/// Of launches whose call takes 2 us, and whose kernel begins after so long and takes 1 us.
std::vector<Column> traced_launches(const std::vector<double>& launch) {
  std::vector<double> overhead;
  for (const double ns : launch) overhead.push_back(ns > 50'000 ? 40'000 : 0);
  return {{"api_record_ns", std::vector<double>(launch.size(), 2000)},
          {"launch_ns", launch},
          {"kernel_ns", std::vector<double>(launch.size(), 1000)},
          {"overhead_ns", overhead}};
}

TEST_F(Findings, TakeTheSlowLaunchApartAsWellAsTheUsualOne) {
  std::vector<double> launch(990, 5000);
  launch.insert(launch.begin() + 500, 10, 60'000);
  run_of_case(begin_run("GPU-1", "traced", "launch", 0), kIdle, traced_launches(launch));
  const SessionData session = read();
  const auto parts = launch_parts(session);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].quantile, "p50");
  EXPECT_DOUBLE_EQ(parts[0].call_ns, 2000);
  EXPECT_DOUBLE_EQ(parts[0].queue_ns, 3000);
  EXPECT_DOUBLE_EQ(parts[0].kernel_ns, 1000);
  EXPECT_DOUBLE_EQ(parts[0].overhead_ns, 0);
  EXPECT_EQ(parts[2].quantile, "p999");
  EXPECT_DOUBLE_EQ(parts[2].queue_ns, 58'000);
  EXPECT_DOUBLE_EQ(parts[2].overhead_ns, 40'000);
}

TEST_F(Findings, AKernelThatBeginsDuringTheCallHasNoQueue) {
  run_of_case(begin_run("GPU-1", "traced", "launch", 0),
              kIdle,
              traced_launches(std::vector<double>(100, 1500)));
  const SessionData session = read();
  const auto parts = launch_parts(session);
  ASSERT_FALSE(parts.empty());
  EXPECT_DOUBLE_EQ(parts[0].call_ns, 1500);
  EXPECT_DOUBLE_EQ(parts[0].queue_ns, 0);
}

TEST_F(Findings, TheFlagAgreesIfItComesLaterThanTheKernelByNoMoreThanAnEchoAndAMicrosecond) {
  struct Case {
    std::vector<double> excess;
    int before_kernel;  // in a run that was invalid for it
    bool agrees;
  };
  int replicate = 0;
  for (const auto& [excess, before_kernel, agrees] : {Case{{500, 1400, 1600}, 0, true},
                                                      Case{{1500, 1900, 1800}, 0, false},
                                                      Case{{500, 500, 600}, 1, false}}) {
    std::filesystem::remove_all(path / "records");
    std::filesystem::create_directories(path / "records");
    RecordWriter writer = begin_run("GPU-1", "traced", "launch", replicate++);
    for (const auto& [name, metric, values] :
         {std::tuple("launch/flag/api:driver", "flag_excess_ns", excess),
          std::tuple("launch/echo/api:driver", "echo_ns", std::vector<double>{600, 700, 600})}) {
      columns(writer, name, {{metric, values}});
      summary(writer, name, "ok");
    }
    Json trace = new_record("trace");
    trace["case"] = "launch/flag/api:driver";
    trace["flags_before_kernel"] = before_kernel;
    writer.write(trace);
    end(writer);
    const SessionData session = read();
    const auto checks = flag_checks(session);
    ASSERT_EQ(checks.size(), 1u);
    EXPECT_DOUBLE_EQ(checks[0].limit_ns, 1600);
    EXPECT_EQ(checks[0].agrees, agrees) << checks[0].excess_p50_ns;
  }
}

/// Kernels of traces that cannot be believed, or that recorded less, are in no table; nor does a
/// record of another shape end the report: it is named.
TEST_F(Findings, KernelsAreThoseOfWholeTraces) {
  const auto write =
      [&](const std::string& process_config, const char* state, const Json& kernels, int run = 0) {
        RecordWriter writer = begin_run("GPU-1", "traced", process_config, run);
        Json trace = new_record("trace");
        trace["case"] = kIdle;
        trace["state"] = state;
        trace["kernels"] = kernels;
        writer.write(trace);
        end(writer);
      };
  const auto kernels = [](int count, int total_ns, int shortest_ns, int longest_ns) {
    return Json{{{"name", "k"},
                 {"grid", {1, 1, 1}},
                 {"block", {32, 1, 1}},
                 {"count", count},
                 {"total_ns", total_ns},
                 {"shortest_ns", shortest_ns},
                 {"longest_ns", longest_ns}}};
  };
  const Json one = kernels(7, 700, 90, 110);
  write("launch", "ok", one);
  write("launch", "ok", kernels(3, 320, 95, 120), 1);
  write("launch+trace_level=kernels", "ok", one);
  write("matmul", "invalid:dropped", one);
  write("convolution", "ok", 5);
  write("allocation", "ok", {1, "x", {{"grid", "y"}}});
  const SessionData session = read();
  const auto rows = lines_of(table_named("kernels.csv"), session, summarise(session));
  EXPECT_THAT(session.problems,
              UnorderedElementsAre(HasSubstr("\"kernels\" is 5, and must be an array"),
                                   HasSubstr("\"kernels\": an entry is a number and no object")));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_THAT(fmt::format("{}", fmt::join(rows[0], ",")),
              HasSubstr("k,1x1x1,32x1x1,no,10,1020,102,90,120"));
}

TEST_F(Findings, EveryTableIsWrittenForAnEmptySessionToo) {
  const SessionData session = read();
  write_details(session, path);
  for (const Table& table : all_tables()) {
    const bool of_session = table.use != TableUse::export_only && !of_comparison(table.use);
    EXPECT_EQ(std::filesystem::exists(path / table.name), of_session) << table.name;
  }
}

/// Counters are shown as their change over a block, and not across cases.
TEST_F(Findings, TelemetryCountersAreChanges) {
  RecordWriter writer = begin(0);
  const auto reading = [&](const char* name, int block, double switches, double clock) {
    Json record = new_record("telemetry");
    record["case"] = name;
    record["block"] = block;
    record["at_ns"] = 1000 + block;
    record["values"] = {{"involuntary_switches", switches}, {"sm_clock_mhz", clock}};
    writer.write(record);
  };
  reading("launch/null", -1, 10, 1400);
  reading("launch/null", 0, 13, 1500);
  reading("launch/other", -1, 20, 1300);
  end(writer);
  const SessionData session = read();
  write_details(session, path);
  std::ifstream in(path / "telemetry.csv");
  std::vector<std::string> seen;
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find("launch/");
    if (at == std::string::npos) continue;
    std::string values = line.substr(at, line.size() - at - 1);
    while (values.find(",,") != std::string::npos) values.replace(values.find(",,"), 2, ",");
    seen.push_back(values);
  }
  EXPECT_THAT(
      seen,
      ElementsAre(
          "launch/null,-1,999,1400,", "launch/null,0,1000,3,1500,", "launch/other,-1,999,1300,"));
}

// --- Of rows and samples that are put together here ---------------------------------------------

/// The coefficient of variation whose logarithms have this variance.
stats::Estimate cv_of(double variance) {
  return {std::sqrt(std::expm1(variance)), {0, 1}};
}

SessionData with_devices(const std::vector<std::pair<std::string, std::string>>& devices) {
  SessionData session;
  for (const auto& [uuid, name] : devices) session.devices.push_back(a_device(uuid, name));
  return session;
}

/// "scope metric level groups share" of each.
std::vector<std::string> in_lines(const std::vector<Variation>& all) {
  std::vector<std::string> lines;
  for (const Variation& own : all)
    lines.push_back(fmt::format("{} {} {} of {}: {:.4f}",
                                own.scope,
                                own.metric,
                                name_of(own.level),
                                own.groups,
                                own.share));
  return lines;
}

TEST(Variations, HaveSharesOfTheirDeviceAndItsKind) {
  const SessionData session = with_devices(
      {{"GPU-1", "A"}, {"GPU-2", "A"}, {"GPU-3", "B"}, {"GPU-4", "C"}, {"GPU-5", "C"}});
  std::vector<SummaryRow> rows;
  const auto add = [&](const char* device,
                       const char* metric,
                       const std::vector<double>& medians,
                       double samples,
                       double runs) {
    SummaryRow& row = rows.emplace_back(a_row(device, kIdle, metric, medians));
    row.runs = medians.size();
    row.within_run_cv = cv_of(samples);
    row.between_run_cv = cv_of(runs);
  };
  add("GPU-3", "api_ns", {5, 6}, 1, 3);  // without another of its kind
  add("GPU-1", "api_ns", {100, 102}, 0.001, 0.002);
  add("GPU-2", "api_ns", {110, 112}, 0.003, 0.004);
  add("GPU-4", "api_ns", {100}, 0, 0);  // of kinds with one run of each nothing is told
  add("GPU-5", "api_ns", {110}, 1, 0);
  add("GPU-4", "wall_ns", {200, 208}, 0.001, 0.001);
  add("GPU-5", "wall_ns", {220, 228}, 0.001, 0.003);
  const std::vector<Variation> all = variations(session, rows);
  ASSERT_THAT(all, SizeIs(16));
  const double a = std::log1p(all[14].cv.value * all[14].cv.value);
  const double c = std::log1p(all[15].cv.value * all[15].cv.value);
  EXPECT_NEAR(a, std::pow(std::log(1.1), 2) / 2, 0.0015);
  EXPECT_LT(all[14].cv.interval.low, all[14].cv.value);
  EXPECT_GT(all[14].cv.interval.high, all[14].cv.value);
  const auto line = [](const char* what, double share) {
    return fmt::format("{}: {:.4f}", what, share);
  };
  EXPECT_THAT(in_lines(all),
              ElementsAre(line("GPU-3 api_ns samples of 2", 0.25),
                          line("GPU-3 api_ns runs of 2", 0.75),
                          line("GPU-1 api_ns samples of 2", 0.001 / (0.003 + a)),
                          line("GPU-1 api_ns runs of 2", 0.002 / (0.003 + a)),
                          line("GPU-2 api_ns samples of 2", 0.003 / (0.007 + a)),
                          line("GPU-2 api_ns runs of 2", 0.004 / (0.007 + a)),
                          line("GPU-4 api_ns samples of 1", 0),
                          line("GPU-4 api_ns runs of 1", 0),
                          line("GPU-5 api_ns samples of 1", 1),
                          line("GPU-5 api_ns runs of 1", 0),
                          line("GPU-4 wall_ns samples of 2", 0.001 / (0.002 + c)),
                          line("GPU-4 wall_ns runs of 2", 0.001 / (0.002 + c)),
                          line("GPU-5 wall_ns samples of 2", 0.001 / (0.004 + c)),
                          line("GPU-5 wall_ns runs of 2", 0.003 / (0.004 + c)),
                          line("A api_ns devices of 2", a / ((0.003 + 0.007) / 2 + a)),
                          line("C wall_ns devices of 2", c / ((0.002 + 0.004) / 2 + c))));
}

TEST(Variations, BetweenDevicesAreOfWhatTwoOfAKindHave) {
  const SessionData session = with_devices({{"GPU-1", "A"}, {"GPU-2", "A"}, {"GPU-3", "B"}});
  const std::vector<double> medians = {100, 101};
  std::vector<SummaryRow> rows = {a_row("GPU-9", kIdle, "api_ns", medians),
                                  a_row("GPU-1", "launch/other", "", medians),
                                  a_row("GPU-2", "launch/other", "", medians),
                                  a_row("GPU-1", "launch/other", "wall_ns", medians),
                                  a_row("GPU-2", "launch/other", "wall_ns", medians),
                                  a_row("GPU-1", kIdle, "other_ns", medians),
                                  a_row("GPU-3", kIdle, "other_ns", medians)};
  rows[4].run_medians.clear();
  for (const char* const device : {"GPU-1", "GPU-2"}) {
    rows.push_back(a_row(device, kIdle, "api_ns", medians, "plain", "launch+trace_level=none"));
  }
  EXPECT_THAT(variations(session, rows), IsEmpty());
  for (const char* const device : {"GPU-1", "GPU-2"})
    rows.push_back(a_row(device, kIdle, "api_ns", medians));
  EXPECT_THAT(in_lines(variations(session, rows)), ElementsAre("A api_ns devices of 2: 0.0000"))
      << "nothing is known of their runs";
}

TEST(Variations, BetweenRanksOfARecordedJobAreOfTheirSamples) {
  SessionData session = with_devices({{"GPU-1", "A"}, {"GPU-2", "A"}});
  std::vector<SummaryRow> rows;
  for (const double level : {100, 110}) {
    const std::string device = level == 100 ? "GPU-1" : "GPU-2";
    rows.push_back(a_row(device, "recorded/step", "step_ns", {level}, "recorded", "recorded"));
    session.cases[rows.back().key].samples["step_ns"][0] = {level, level + 2, level + 1};
  }
  const std::vector<Variation> all = variations(session, rows);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_NEAR(all[0].cv.value, std::log(1.1) / std::sqrt(2), 0.01);
}

TEST(Variations, OfARunWithStepsAreThoseOfLaunchesAndSteps) {
  SessionData session = with_devices({{"GPU-1", "A"}});
  const auto add = [&](int replicate, double within, double between) {
    JobInfo& job = session.jobs.emplace_back();
    job.device = "GPU-1";
    job.replicate = replicate;
    StepVariation& own = job.record.variation.emplace_back();
    own.case_name = "recorded/launch/stream:idle";
    own.metric = "launch_ns";
    own.steps = 7;
    own.within = {cv_of(within).value, 0.25, 0.5};
    own.between = {cv_of(between).value, 0.75, 1};
  };
  add(0, 1, 2);
  add(1, 3, 9);
  SummaryRow row =
      a_row("GPU-1", "recorded/launch/stream:idle", "launch_ns", {1}, "recorded", "recorded");
  row.within_run_cv = cv_of(6);
  row.runs = 2;
  const std::vector<Variation> all = variations(session, {row});
  // 15 of both runs, half of which is that of one; a share is 1 at most.
  EXPECT_THAT(in_lines(all),
              ElementsAre("GPU-1 launch_ns launches of 7: 0.1333",
                          "GPU-1 launch_ns steps of 7: 0.2667",
                          "GPU-1 launch_ns launches of 7: 0.4000",
                          "GPU-1 launch_ns steps of 7: 1.0000",
                          "GPU-1 launch_ns samples of 2: 0.8000"));
  EXPECT_EQ(all[0].cv.interval.low, 0.25);
  EXPECT_EQ(all[3].cv.interval.high, 1);
  EXPECT_EQ(all[3].replicate, 1);
}

TEST(OutlierDevices, AreOfPlainRunsOfEachKind) {
  SessionData session;
  std::vector<SummaryRow> rows;
  for (const std::string name : {"A", "B"}) {
    for (int i = 0; i < 3; ++i) {
      const std::string uuid = name + std::to_string(i);
      session.devices.push_back(a_device(uuid, name));
      const double level = i == 2 ? 150 : 100;
      for (const char* const arm : {"plain", "traced"}) {
        if (name == "A" || arm == std::string("plain"))
          rows.push_back(a_row(uuid, kIdle, "api_ns", {level, level + 1, level + 2}, arm));
      }
    }
  }
  const std::vector<OutlierDevice> odd = outlier_devices(session, rows);
  std::vector<std::string> found;
  for (const OutlierDevice& own : odd) found.push_back(own.device + " " + own.key.arm);
  EXPECT_THAT(found, ElementsAre("A2 plain", "B2 plain"));
  EXPECT_NEAR(odd.at(0).ratio, 1.5, 0.01);
}

/// "device case metric level: plain to traced" of each.
std::vector<std::string> effects_in(const std::vector<SummaryRow>& rows) {
  std::vector<std::string> lines;
  for (const ObserverEffect& own : observer_effects(rows))
    lines.push_back(fmt::format("{} {} {} {}: {} of {} to {} of {}",
                                own.device,
                                own.name.text(),
                                own.metric,
                                name_of(own.level),
                                own.plain,
                                own.plain_runs,
                                own.traced,
                                own.traced_runs));
  return lines;
}

TEST(ObserverEffects, AreOfTheSameDeviceCaseAndMetric) {
  const char *const none = "launch+trace_level=none",
                    *const launches = "launch+trace_level=launches",
                    *const all = "launch+trace_level=all";
  std::vector<SummaryRow> rows = {a_row("GPU-1", kIdle, "api_ns", {1}, "traced"),
                                  a_row("GPU-1", "launch/empty", "api_ns", {2}, "plain", none),
                                  a_row("GPU-1", kIdle, "api_ns", {3}),
                                  a_row("GPU-1", "launch/alone", "api_ns", {4}, "plain", none),
                                  a_row("GPU-2", kIdle, "api_ns", {5}, "traced", launches),
                                  a_row("GPU-1", kIdle, "wall_ns", {6}, "traced", launches),
                                  a_row("GPU-1", "launch/empty", "api_ns", {7}, "traced", launches),
                                  a_row("GPU-1", kIdle, "api_ns", {9}, "traced", launches),
                                  a_row("GPU-1", kIdle, "api_ns", {10, 12}, "traced", all),
                                  a_row("GPU-1", kIdle, "api_ns", {20, 22, 24}, "plain", none)};
  rows[1].run_medians.clear();
  rows[7].run_medians.clear();
  EXPECT_THAT(effects_in(rows),
              ElementsAre("GPU-1 launch/null/api:driver/mode:idle api_ns all: 22 of 3 to 11 of 2"));
}

TEST(ObserverEffects, OfOlderRecordsAreOfWhatHasThatOfLaunches) {
  const char* const launches = "launch+trace_level=launches";
  const std::vector<SummaryRow> rows = {a_row("GPU-1", "launch/alone", "api_ns", {1}),
                                        a_row("GPU-1", "launch/alone", "api_ns", {2}, "traced"),
                                        a_row("GPU-1", kIdle, "api_ns", {3}),
                                        a_row("GPU-1", kIdle, "api_ns", {4}, "traced", launches),
                                        a_row("GPU-1", kIdle, "api_ns", {5}, "traced")};
  EXPECT_THAT(
      effects_in(rows),
      ElementsAre("GPU-1 launch/null/api:driver/mode:idle api_ns launches: 3 of 1 to 4 of 1",
                  "GPU-1 launch/null/api:driver/mode:idle api_ns all: 3 of 1 to 5 of 1"));
}

// --- The parts of a launch ----------------------------------------------------------------------

using OfMetrics = std::map<std::string, std::vector<double>>;

SessionData with_launches(const OfMetrics& values, const char* process_config = "launch") {
  SessionData session;
  CaseData& data = session.cases[{"GPU-1", "traced", process_config, CaseName::parse(kIdle)}];
  for (const auto& [metric, samples] : values) data.samples[metric][0] = samples;
  return session;
}

OfMetrics launches_of(std::size_t n) {
  std::vector<double> ascending(n);
  for (std::size_t i = 0; i < n; ++i) ascending[i] = 8 * static_cast<double>(i + 1);
  return {{"api_record_ns", std::vector<double>(n, 3)},
          {"launch_ns", ascending},
          {"kernel_ns", std::vector<double>(n, 2)},
          {"overhead_ns", std::vector<double>(n, 1)}};
}

TEST(LaunchParts, AreOfQuantilesBeyondWhichThereIsASample) {
  for (const auto& [n, quantiles] :
       {std::pair(0, 0), {1, 0}, {2, 1}, {99, 1}, {100, 2}, {999, 2}, {1000, 3}})
    EXPECT_THAT(launch_parts(with_launches(launches_of(static_cast<std::size_t>(n)))),
                SizeIs(quantiles))
        << n;
}

TEST(LaunchParts, AreMeansOfTheSamplesAroundAQuantile) {
  const std::vector<LaunchParts> parts = launch_parts(with_launches(launches_of(1001)));
  ASSERT_THAT(parts, SizeIs(3));
  const struct {
    const char* quantile;
    std::size_t samples;
    double queue_ns;
  } expected[] = {{"p50", 101, 8 * 501 - 3}, {"p99", 11, 8 * 991 - 3}, {"p999", 2, 8 * 999.5 - 3}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parts[i].quantile, expected[i].quantile);
    EXPECT_EQ(parts[i].samples, expected[i].samples);
    EXPECT_EQ(parts[i].call_ns, 3);
    EXPECT_EQ(parts[i].queue_ns, expected[i].queue_ns);
    EXPECT_EQ(parts[i].kernel_ns, 2);
    EXPECT_EQ(parts[i].overhead_ns, 1);
  }
}

TEST(LaunchParts, AreOfTheTimeUntilTheKernelHasEnded) {
  // The earlier one of two, until then: 21 ns after its call, and not 2 and 30.
  const std::vector<LaunchParts> parts = launch_parts(with_launches({{"api_record_ns", {9, 1}},
                                                                     {"launch_ns", {20, 2}},
                                                                     {"kernel_ns", {1, 30}},
                                                                     {"overhead_ns", {4, 5}}}));
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].call_ns, 9);
  EXPECT_EQ(parts[0].queue_ns, 11);
  EXPECT_EQ(parts[0].kernel_ns, 1);
  EXPECT_EQ(parts[0].overhead_ns, 4);
}

TEST(LaunchParts, NeedEachPartOfEachLaunchOfATracedRun) {
  for (const auto& [metric, samples] : launches_of(4)) {
    for (const std::size_t n : {0u, 3u, 5u}) {
      OfMetrics values = launches_of(4);
      values[metric].resize(n);
      EXPECT_THAT(launch_parts(with_launches(values)), IsEmpty()) << metric << " " << n;
    }
  }
  EXPECT_THAT(launch_parts(with_launches(launches_of(4), "launch+trace_level=kernels")), IsEmpty());
  SessionData session = with_launches(launches_of(4), "memory");
  const CaseData whole = session.cases.begin()->second;
  session.cases[{"GPU-1", "plain", "launch", CaseName::parse(kIdle)}] = whole;
  session.cases[{"GPU-1", "traced", "launch+trace_level=all", CaseName::parse(kIdle)}] = whole;
  session.cases[{"GPU-1", "traced", "launch", CaseName::parse("launch/a")}]
      .samples["launch_ns"][0] = {1, 2};
  EXPECT_THAT(launch_parts(session), SizeIs(1));
}

// --- The flag of a kernel -----------------------------------------------------------------------

/// A GPU whose flags come later by `excess`, with an echo of 600.
SessionData with_flags(const std::vector<double>& excess) {
  SessionData session = with_devices({{"GPU-0", "A"}, {"GPU-1", "A"}});
  const auto samples_of = [&](
      const char* arm, const char* process_config, const char* name) -> auto& {
    return session.cases[{"GPU-1", arm, process_config, CaseName::parse(name)}].samples;
  };
  const char *const flag = "launch/flag/api:driver", *const echo = "launch/echo/api:driver";
  samples_of("traced", "launch", flag)["flag_excess_ns"][0] = excess;
  samples_of("traced", "launch", echo)["echo_ns"][0] = {600, 600, 900};
  samples_of("traced", "event", kIdle);
  for (const char* const name : {flag, echo}) {
    for (const auto& [arm, process_config] :
         {std::pair("plain", "launch"), std::pair("traced", "free+wait=block")}) {
      samples_of(arm, process_config, name)["flag_excess_ns"][0] = {1e6};
      samples_of(arm, process_config, name)["echo_ns"][0] = {1e6};
    }
  }
  return session;
}

FlagCheck only_check(const SessionData& session) {
  const std::vector<FlagCheck> checks = flag_checks(session);
  EXPECT_THAT(checks, SizeIs(1));
  return checks.at(0);
}

TEST(FlagChecks, AgreeUpToAnEchoAndAMicrosecond) {
  for (const auto& [excess, agrees] : {std::pair(1600, true), std::pair(1601, false)}) {
    const auto checks = flag_checks(with_flags({0, static_cast<double>(excess), 9000}));
    ASSERT_THAT(checks, SizeIs(1));
    EXPECT_EQ(checks[0].device, "GPU-1");
    EXPECT_EQ(checks[0].samples, 3u);
    EXPECT_EQ(checks[0].limit_ns, 1600);
    EXPECT_EQ(checks[0].excess_p50_ns, excess);
    EXPECT_EQ(checks[0].before_kernel, 0u);
    EXPECT_EQ(checks[0].agrees, agrees);
  }
}

TEST(FlagChecks, CountTheFlagsOfTheirDeviceThatWereSeenTooEarly) {
  SessionData session = with_flags({500});
  const auto add = [&](const char* device, std::optional<std::string> name, int before) {
    TraceInfo& trace = session.traces.emplace_back();
    trace.device = device;
    trace.record.case_name = std::move(name);
    if (before > 0) trace.record.flags_before_kernel = before;
  };
  add("GPU-2", "launch/flag/api:driver", 16);
  add("GPU-1", "launch/flags/api:driver", 8);
  add("GPU-1", {}, 4);
  add("GPU-1", "launch/flag/api:driver", 0);
  EXPECT_TRUE(only_check(session).agrees);
  add("GPU-1", "launch/flag/api:driver", 2);
  add("GPU-1", "launch/flag/api:runtime", 1);
  EXPECT_EQ(only_check(session).before_kernel, 3u);
  EXPECT_FALSE(only_check(session).agrees);
}

TEST(FlagChecks, NeedFlagsAndEchoes) {
  EXPECT_THAT(flag_checks(with_flags({})), IsEmpty());
  for (const char* const gone : {"launch/flag/api:driver", "launch/echo/api:driver"}) {
    SessionData session = with_flags({500});
    session.cases.erase({"GPU-1", "traced", "launch", CaseName::parse(gone)});
    EXPECT_THAT(flag_checks(session), IsEmpty());
    session.cases[{"GPU-1", "traced", "launch", CaseName::parse(gone)}];
    EXPECT_THAT(flag_checks(session), IsEmpty());
  }
}

}  // namespace
}  // namespace launchgap
