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
    const bool of_session = table.use == TableUse::session || table.use == TableUse::details;
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

}  // namespace
}  // namespace launchgap
