#include "harness/summary/summary.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/csv_writer.h"
#include "harness/core/errors.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/headlines.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

SummaryRow only_row(const SessionData& session) {
  const std::vector<SummaryRow> rows = summarise(session);
  EXPECT_EQ(rows.size(), 1u);
  SummaryRow row = rows.at(0);
  row.session = nullptr;  // which may be gone
  return row;
}

TEST_F(WrittenSession, PoolsTheSamplesOfAllRunsAndKeepsRunsApart) {
  for (int replicate = 0; replicate < 2; ++replicate) {
    const double later = replicate * 10;
    run_of_case(begin(replicate),
                "launch/null/mode:idle",
                {{"api_ns", {101 + later, 102 + later, 103 + later}}});
  }
  const SessionData session = read();
  const SummaryRow row = only_row(session);
  EXPECT_EQ(row.status, Status::ok);
  EXPECT_EQ(row.n, 6u);
  EXPECT_EQ(row.runs, 2u);
  EXPECT_EQ(row.p50, 107);
  EXPECT_THAT(row.run_medians, ElementsAre(102, 112));
  EXPECT_FALSE(row.p50_ci_lo.has_value()) << "two runs have no interval";
  EXPECT_GT(row.icc->value, 0.9);
  EXPECT_DOUBLE_EQ(*row.run_median_range, 10.0 / 107);
  EXPECT_EQ(row.method, "by hand");
}

TEST_F(WrittenSession, QuantilesAreThoseOfAllSamplesHoweverManyRunsTheyCameFrom) {
  std::vector<double> all;
  std::uint64_t state = 1;
  for (int runs = 1; runs <= 7; ++runs) {
    std::vector<double> values;
    for (int i = 0; i < 3 * runs * runs + 1; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      values.push_back(static_cast<double>(state >> 40));
    }
    run_of_case(begin(runs), "launch/null", {{"api_ns", values}});
    all.insert(all.end(), values.begin(), values.end());
    std::vector<double> sorted = all;
    std::ranges::sort(sorted);
    const SummaryRow row = only_row(read());
    EXPECT_EQ(row.n, sorted.size());
    EXPECT_EQ(row.min, sorted.front());
    EXPECT_EQ(row.max, sorted.back());
    const std::size_t half = sorted.size() / 2;
    EXPECT_DOUBLE_EQ(*row.p50,
                     sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2);
  }
}

// At the end of the run the device had cooled down for one case. That says nothing of the others.
TEST_F(WrittenSession, ACaseOnADeviceThatHadCooledDownIsNamedAndTheRunStaysSteady) {
  RecordWriter writer = RecordWriter::create(path / "records" / "GPU-1.plain.launch.0.0.jsonl");
  Json run = new_record("run");
  run["device"] = {{"uuid", "GPU-1"}};
  run["replicate"] = 0;
  run["arm"] = "plain";
  run["process_config"] = "launch";
  run["warm_up"] = {{"steady", true}, {"seconds", 0.2}, {"rounds", 10}};
  writer.write(run);
  for (const char* const name : {"launch/null/mode:idle", "launch/null/mode:burst"}) {
    samples(writer, name, {1, 2, 3});
    Json record = new_record("summary");
    record["case"] = name;
    record["status"] = "ok";
    if (std::string_view(name).ends_with("burst")) record["steady"] = false;
    writer.write(record);
  }
  Json end = new_record("end");
  end["status"] = "ok";
  end["warm_up"] = {{"steady", false}, {"seconds", 0.7}, {"rounds", 35}, {"again", 1}};
  writer.write(end);
  const SessionData session = read();
  ASSERT_EQ(session.runs.size(), 1u);
  EXPECT_EQ(session.runs[0].steady, true);
  EXPECT_THAT(session.runs[0].restless_cases, ElementsAre("launch/null/mode:burst"));
}

TEST_F(WrittenSession, AHeadlineIsOfItsOwnCaseAndOfNoneThatBeginsLikeIt) {
  const std::string begin_of = "allocation/latency/allocator:direct/bytes:";
  run_of_case(begin(0), begin_of + "10485760", {{"call_ns", {100'000}}});
  const SessionData session = read();
  const auto rows = summarise(session);
  const RowsByDevice by_device(rows);
  bool asked = false;
  for (const NamedHeadline& named : all_headlines()) {
    if (named.headline->heading != "allocate 1 MiB") continue;
    asked = true;
    EXPECT_FALSE(headline_value(by_device.of("GPU-1"), named).row)
        << "10 MiB were measured, and 1 MiB was not";
  }
  EXPECT_TRUE(asked);
}

TEST_F(WrittenSession, AFailedCaseKeepsTheRunsInWhichItDidNotFail) {
  run_of_case(begin(0), "launch/null", {{"api_ns", {1, 2, 3}}});
  RecordWriter broken = begin(1);
  samples(broken, "launch/null", {1000});
  summary(broken, "launch/null", "failed", "it broke");
  end(broken);
  const SessionData session = read();
  const SummaryRow row = only_row(session);
  EXPECT_EQ(row.status, Status::failed);
  EXPECT_EQ(row.reason, "in 1 of 2 runs: it broke");
  EXPECT_EQ(row.n, 3u);
  EXPECT_EQ(row.max, 3);
}

TEST_F(WrittenSession, ACaseWithoutAResultHasARowThatSaysWhy) {
  RecordWriter writer = begin(0);
  summary(writer, "launch/null", "unsupported", "it cannot");
  end(writer);
  const SessionData session = read();
  const SummaryRow row = only_row(session);
  EXPECT_EQ(row.metric, "");
  EXPECT_EQ(row.status, Status::unsupported);
  EXPECT_EQ(row.reason, "it cannot");
}

TEST_F(WrittenSession, BlocksBeforeAKillCountAndTheRunIsIncomplete) {
  RecordWriter writer = begin(0);
  samples(writer, "launch/null", {5, 6});
  const SessionData session = read();
  const SummaryRow row = only_row(session);
  EXPECT_EQ(row.status, Status::ok);
  EXPECT_EQ(row.reason, "cut short in 1 of 1 runs");
  EXPECT_EQ(row.n, 2u);
  EXPECT_EQ(session.runs[0].status, "incomplete");
}

TEST_F(WrittenSession, WhatWasPlannedAndNeverBegunIsNotSilent) {
  meta["plan"] = {{{"device", "GPU-1"},
                   {"process_config", "launch"},
                   {"arm", "plain"},
                   {"cases", {"launch/null"}}}};
  const SessionData session = read();
  const SummaryRow row = only_row(session);
  EXPECT_EQ(row.status, Status::skipped);
  EXPECT_THAT(row.reason, HasSubstr("not reached"));
}

TEST_F(WrittenSession, AttemptsOfOneRunAreOneRun) {
  RecordWriter first = begin(0);
  samples(first, "launch/null/mode:idle", {1});
  summary(first, "launch/null/mode:idle", "ok");
  summary(first, "launch/null/mode:burst", "failed", "sticky");
  end(first);
  run_of_case(begin(0, 1), "launch/other", {{"api_ns", {2}}});
  const SessionData session = read();
  EXPECT_EQ(session.runs.size(), 2u);
  EXPECT_EQ(summarise(session).size(), 3u);
}

TEST(Tables, EveryTableAndColumnHasAMeaningAndIsThereOnce) {
  std::set<std::string_view> names;
  for (const Table& table : all_tables()) {
    EXPECT_TRUE(names.insert(table.name).second) << table.name;
    EXPECT_FALSE(table.one_row_per.empty()) << table.name;
    std::set<std::string_view> keys;
    for (const ColumnInfo& column : table.columns) {
      EXPECT_TRUE(keys.insert(column.key).second) << table.name << " " << column.key;
      EXPECT_FALSE(column.meaning.empty()) << table.name << " " << column.key;
      EXPECT_FALSE(column.heading.empty()) << table.name << " " << column.key;
      const bool a_number = column.kind == CellKind::number || column.kind == CellKind::count;
      EXPECT_TRUE(a_number || column.unit.empty()) << table.name << " " << column.key;
    }
  }
}

TEST(Tables, TheSummaryHasTheColumnsOfTheDesign) {
  std::string header;
  for (const ColumnInfo& column : table_named("summary.csv").columns)
    header += (header.empty() ? "" : " ") + std::string(column.key);
  EXPECT_THAT(
      header,
      HasSubstr(
          "session_id node device_id device_name backend compute_capability arm process_config "
          "benchmark "
          "params "
          "metric unit direction status reason runs n min q1 p50 q3 p90 p99 p999 max mean sd mad "
          "p50_ci_lo p50_ci_hi within_run_cv between_run_cv icc lag1 modes outlier_share source "
          "simulated"));
}

TEST_F(WrittenSession, APublishedValueHasNoQuantilesButItself) {
  for (const std::string arm : {"plain", "published"})
    run_of_case(begin_run("GPU-1", arm, "launch", 0), kIdle, {{"api_ns", {2000}}});
  const SessionData session = read();
  std::map<std::string, int> quantiles;
  for (const auto& line : lines_of(table_named("quantiles.csv"), session, summarise(session)))
    ++quantiles[line.at(1)];
  EXPECT_EQ(quantiles["published"], 1);
  EXPECT_EQ(quantiles["plain"], 41 + 13) << "every fortieth, and those of the tails";
}

TEST(Tables, ACallWaitsForTheDeviceFromFourFifthsOnAndDoesNotBelowATenth) {
  std::vector<SummaryRow> rows;
  for (const double share : {0.0, 0.0999, 0.1, 0.8, 0.8001})
    rows.push_back(a_row("GPU-1",
                         "allocation/blocking/operation:map/relation:same_stream",
                         "blocked_share",
                         {share}));
  std::vector<std::string> verdicts;
  for (const auto& line : lines_of(table_named("blocking.csv"), {}, rows))
    verdicts.push_back(line.at(5));
  EXPECT_THAT(verdicts,
              ElementsAre("no_wait", "no_wait", "partial", "partial", "waits_for_device"));
}

TEST_F(WrittenSession, AFolderThatIsNoSessionIsNamed) {
  EXPECT_THROW(read_session("/nowhere"), UsageError);
  EXPECT_THROW(read_session(path), UsageError) << "no session.json";
  write_file(path / "session.json", "{torn");
  EXPECT_THROW(read_session(path), Error);
  meta["schema"] = "launchgap/2";
  EXPECT_THROW(read(), Error);
}

// --- Of a session that is put together here -----------------------------------------------------

/// A session with one case, and its data.
struct OneCase {
  SessionData session;
  CaseData& data = session.cases[{"GPU-1", "traced", "launch", CaseName::parse(kIdle)}];
};

TEST(Summary, TheGravestStatusOfACaseIsSaidWithItsRuns) {
  const struct {
    std::vector<std::optional<Status>> outcomes;
    Status status;
    const char* reason;
  } cases[] = {
      {{Status::ok, Status::ok}, Status::ok, ""},
      {{Status::unsupported, Status::unsupported}, Status::unsupported, "run 0"},
      {{Status::ok, Status::skipped, Status::unsupported, Status::skipped},
       Status::skipped,
       "in 2 of 4 runs: run 1"},
      {{Status::skipped, Status::invalid, Status::failed}, Status::failed, "in 1 of 3 runs: run 2"},
      {{Status::skipped, Status::invalid}, Status::invalid, "in 1 of 2 runs: run 1"},
      {{Status::ok, {}, Status::ok}, Status::ok, "cut short in 1 of 3 runs"},
      {{{}, Status::unsupported}, Status::unsupported, "in 1 of 2 runs: run 1"},
  };
  for (const auto& [outcomes, status, reason] : cases) {
    OneCase made;
    for (std::size_t run = 0; run < outcomes.size(); ++run)
      made.data.outcomes[static_cast<int>(run)] = {outcomes[run], "run " + std::to_string(run)};
    const SummaryRow row = only_row(made.session);
    EXPECT_EQ(row.status, status);
    EXPECT_EQ(row.reason, reason);
  }
}

TEST(Summary, HasTheQuantilesOfAllSamples) {
  OneCase made;
  made.data.metric_order = {"api_ns"};
  std::vector<double>& samples = made.data.samples["api_ns"][0];
  for (int i = 1000; i >= 0; --i) samples.push_back(i);
  const SummaryRow row = only_row(made.session);
  EXPECT_EQ(row.n, 1001u);
  EXPECT_EQ(row.runs, 1u);
  EXPECT_THAT((std::vector{row.min, row.q1, row.p50, row.q3, row.p90, row.p99, row.p999, row.max}),
              ElementsAre(0, 250, 500, 750, 900, 990, 999, 1000));
  EXPECT_DOUBLE_EQ(row.mean.value(), 500);
  EXPECT_EQ(row.mad, 250);
  EXPECT_EQ(row.outlier_share, 0);
  EXPECT_THAT(row.run_medians, ElementsAre(500));
  EXPECT_EQ(row.run_median_range, std::nullopt) << "of one run";
}

TEST(Summary, EmptyRunsAndMetricsWithoutSamplesDoNotCount) {
  OneCase made;
  made.data.metric_order = {"api_ns", "wall_ns"};
  made.data.samples["api_ns"] = {{0, {}}, {1, {7, 9}}, {2, {}}, {3, {11, 13}}};
  made.data.samples["wall_ns"] = {{0, {}}};
  const SummaryRow row = only_row(made.session);
  EXPECT_EQ(row.metric, "api_ns");
  EXPECT_EQ(row.runs, 2u);
  EXPECT_THAT(row.run_medians, ElementsAre(8, 12));
  EXPECT_EQ(row.lag1, std::nullopt) << "of two samples";
}

TEST(Summary, MetricsStandInTheirOrderHoweverMany) {
  OneCase made;
  made.data.metric_order = {"c", "a", "b"};
  for (const std::string& metric : made.data.metric_order)
    made.data.samples[metric][0] = {static_cast<double>(metric[0])};
  std::vector<std::string> found;
  for (const SummaryRow& row : summarise(made.session))
    found.push_back(fmt::format("{} {}", row.metric, *row.p50));
  EXPECT_THAT(found, ElementsAre("c 99", "a 97", "b 98"));
}

TEST(Summary, NeighboursAreAlikeAsOnAverageOfTheRunsByTheirSize) {
  OneCase made;
  made.data.metric_order = {"api_ns"};
  made.data.samples["api_ns"] = {{0, {1, 2, 3}}, {1, {1, 2, 1, 2, 1, 2}}, {2, {4, 4, 4}}};
  // Of 1, 2, 3 it is 0; of six that alternate -5/6; of equal ones there is none.
  EXPECT_DOUBLE_EQ(only_row(made.session).lag1.value(), -5.0 / 6 * 6 / 9);
}

TEST(Summary, RunMediansHaveARangeWhereTheirMedianIsAboveZero) {
  OneCase made;
  made.data.metric_order = {"api_ns"};
  made.data.samples["api_ns"] = {{0, {8}}, {1, {2}}, {2, {4}}};
  EXPECT_EQ(only_row(made.session).run_median_range, 1.5);
  EXPECT_THAT(only_row(made.session).run_medians, ElementsAre(8, 2, 4)) << "by run";
  made.data.samples["api_ns"] = {{0, {0}}, {1, {0}}, {2, {4}}};
  EXPECT_EQ(only_row(made.session).run_median_range, std::nullopt);
  made.data.samples["api_ns"] = {{0, {0.5}}, {1, {1}}, {2, {1}}};
  EXPECT_EQ(only_row(made.session).run_median_range, 0.5);
  made.data.samples["api_ns"] = {{0, {1}}, {1, {3}}};
  EXPECT_EQ(only_row(made.session).run_median_range, 1);
}

TEST(Summary, ImpossibleRecordsAreThoseOfACasesTraces) {
  OneCase made;
  const auto add = [&](const char* device, const char* config, std::optional<std::string> name) {
    TraceInfo& trace = made.session.traces.emplace_back();
    trace.device = device;
    trace.process_config = ProcessConfig(config);
    trace.record.case_name = std::move(name);
    trace.record.impossible = 5;
    return &trace;
  };
  add("GPU-1", "launch", {});
  add("GPU-1", "launch", kIdle)->record.impossible.reset();
  add("GPU-2", "launch", kIdle);
  add("GPU-1", "launch+wait=block", kIdle);
  add("GPU-1", "launch", "launch/other");
  EXPECT_EQ(only_row(made.session).impossible_records, std::nullopt);
  add("GPU-1", "launch", kIdle);
  add("GPU-1", "launch", kIdle)->record.impossible = 2;
  EXPECT_EQ(only_row(made.session).impossible_records, 7u);
}

TEST(Summary, RowsThatCannotBeAreTakenOut) {
  std::vector<SummaryRow> rows(5);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].n = i;
    rows[i].impossible = i % 2 == 0;
  }
  std::vector<std::size_t> taken, left;
  for (const SummaryRow& row : take_impossible(rows)) taken.push_back(row.n);
  for (const SummaryRow& row : rows) left.push_back(row.n);
  EXPECT_THAT(taken, ElementsAre(0, 2, 4));
  EXPECT_THAT(left, ElementsAre(1, 3));
}

// --- What a session's files say -----------------------------------------------------------------

TEST_F(WrittenSession, OfOneRunThatIsThereTwiceTheFirstFileCounts) {
  run_of_case(begin(0), kIdle, {{"api_ns", {1, 2}}});
  std::filesystem::copy_file(path / "records" / "GPU-1.plain.launch.0.0.jsonl",
                             path / "records" / "a-copy.jsonl");
  const SessionData session = read();
  EXPECT_THAT(session.problems,
              ElementsAre(EndsWith("records/a-copy.jsonl: it has the run of "
                                   "GPU-1.plain.launch.0.0.jsonl once more, and does not count")));
  EXPECT_THAT(session.runs, SizeIs(1));
  EXPECT_EQ(only_row(session).n, 2u);
}

TEST_F(WrittenSession, AFileWithoutARunIsNamed) {
  RecordWriter writer = RecordWriter::create(path / "records" / "b.jsonl");
  summary(writer, kIdle, "ok");
  write_file(path / "records" / "notes.txt", "no records");
  const SessionData session = read();
  EXPECT_THAT(session.problems, ElementsAre(EndsWith("b.jsonl: no run was begun in it")));
  EXPECT_THAT(session.runs, IsEmpty());
  EXPECT_THAT(session.cases, IsEmpty());
}

TEST_F(WrittenSession, ARunCountsItsCasesThatAreOkAndThatFailed) {
  RecordWriter writer = begin(0);
  int number = 0;
  for (const char* const status : {"ok", "failed", "invalid", "skipped", "unsupported", "ok"})
    summary(writer, "launch/a" + std::to_string(++number), status);
  samples(writer, "launch/unended", {1});
  end(writer, 2.5);
  const RunInfo run = read().runs.at(0);
  EXPECT_EQ(run.cases_ok, 2);
  EXPECT_EQ(run.cases_failed, 3);
  EXPECT_EQ(run.status, "ok");
  EXPECT_EQ(run.duration_s, 2.5);
  EXPECT_FALSE(run.simulated);
}

TEST_F(WrittenSession, WhatFailedInALaterAttemptHasNoSamplesOfThatRun) {
  run_of_case(begin(0), kIdle, {{"api_ns", {1}}});
  run_of_case(begin(1), kIdle, {{"api_ns", {2}}});
  RecordWriter again = begin(0, 1);
  summary(again, kIdle, "failed", "it broke");
  end(again);
  const SessionData session = read();
  const CaseData& data = session.cases.begin()->second;
  EXPECT_THAT(data.samples.at("api_ns"), ElementsAre(Pair(1, ElementsAre(2))));
  ASSERT_THAT(data.blocks, SizeIs(1));
  EXPECT_EQ(data.blocks[0].replicate, 1);
  EXPECT_EQ(data.blocks[0].counts.at("api_ns"), 1u);
}

TEST_F(WrittenSession, AnAttemptThatDidNotReachACaseLeavesItsOutcome) {
  RecordWriter first = begin(0);
  summary(first, kIdle, "unsupported", "it cannot");
  end(first);
  RecordWriter again = begin(0, 1);
  samples(again, kIdle, {1});
  const SessionData session = read();
  EXPECT_EQ(session.cases.begin()->second.outcomes.at(0).status, Status::unsupported);
}

TEST_F(WrittenSession, PlannedCasesOfADeviceThatWasNotUsedSayWhy) {
  meta["devices"][0]["usable"] = false;
  meta["devices"][0]["reason"] = "it is busy";
  meta["plan"] = {{{"device", "GPU-1"},
                   {"process_config", "launch"},
                   {"arm", "plain"},
                   {"cases", {"launch/a", "launch/b"}}},
                  {{"device", "GPU-2"},
                   {"process_config", "launch"},
                   {"arm", "plain"},
                   {"cases", {"launch/a", "launch/a"}}}};
  RecordWriter writer = begin(3);
  summary(writer, "launch/a", "ok");
  end(writer);
  std::vector<std::string> found;
  for (const auto& [key, data] : read().cases)
    found.push_back(key.device + " " + key.name.text() + " " +
                    data.outcomes.begin()->second.reason);
  EXPECT_THAT(found,
              ElementsAre("GPU-1 launch/a ",
                          "GPU-1 launch/b the device was not used: it is busy",
                          "GPU-2 launch/a not reached: the session ended before"));
}

TEST_F(WrittenSession, AReplayThatIsNoneIsNamed) {
  std::filesystem::create_directories(path / "replays");
  write_file(path / "replays" / "b.json", R"({"record": "other"})");
  write_file(path / "replays" / "a.json", "{torn");
  write_file(path / "replays" / "c.txt", "no replay");
  EXPECT_THAT(read().problems,
              ElementsAre(HasSubstr("replays/a.json: "),
                          EndsWith("replays/b.json: it is no replay of allocations")));
}

}  // namespace
}  // namespace launchgap
