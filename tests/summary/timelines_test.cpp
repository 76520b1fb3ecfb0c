#include "harness/summary/timelines.h"

#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/import/event_file.h"
#include "harness/record/records.h"
#include "tests/import/job.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

constexpr std::int64_t kBegin = 1'000'000'000;

/// A traced run whose usual launch takes 10 us, 4 us of them in the call, beside slow ones.
struct Timelines : WrittenSession {
  void slow(std::uint64_t sample,
            double launch_ns,
            double call_ns,
            std::int64_t lasts_ns = 20'000) {
    SlowSampleRecord record{.case_name = kIdle,
                            .sample = sample,
                            .metric = "launch_ns",
                            .values = {{"launch_ns", launch_ns},
                                       {"api_record_ns", call_ns},
                                       {"queue_ns", launch_ns - call_ns}},
                            .begin_ns = kBegin,
                            .end_ns = kBegin + lasts_ns};
    slow_.push_back(record);
  }

  std::vector<SlowSample> read_back() {
    {
      RecordWriter writer = begin_run("GPU-1", "traced", "launch", 0);
      const auto usual = [](double ns) { return std::vector<double>(101, ns); };
      columns(writer,
              kIdle,
              {{"launch_ns", usual(10'000)},
               {"api_record_ns", usual(4'000)},
               {"queue_ns", usual(6'000)}});
      for (const SlowSampleRecord& record : slow_) writer.write(record_to_json(record));
      summary(writer, kIdle, "ok");
      end(writer);
    }
    if (!job_.process.trace.calls.empty() || !job_.process.trace.kernels.empty()) {
      std::filesystem::create_directories(path / "events");
      recording::EventsHead head;
      head.case_name = case_of_events_;
      recording::EventWriter(path / "events" / "GPU-1.traced.launch.0.0.jsonl.gz")
          .write(head, job_.process);
    }
    session_ = read();
    rows_ = summarise(session_);
    return slow_samples_of(session_, rows_);
  }

  recording::Job job_;
  std::string case_of_events_ = kIdle;
  std::vector<SlowSampleRecord> slow_;
  SessionData session_;
  std::vector<SummaryRow> rows_;
};

TEST_F(Timelines, TellWhatIsOddAndWhichPartWasLonger) {
  slow(3, 100'000, 94'000);
  slow(4, 50'000, 4'000);
  slow(5, 14'900, 8'900);
  slow(6, 40'000, 19'000);  // both parts are longer, and each by about half
  const std::vector<SlowSample> slow = read_back();
  ASSERT_EQ(slow.size(), 4u);
  EXPECT_EQ(slow[0].median, 10'000);
  EXPECT_EQ(slow[0].ratio(), 10);
  EXPECT_EQ(slow[0].longer_part, "api_record_ns");
  EXPECT_EQ(slow[0].longer_by_ns, 90'000);
  EXPECT_EQ(slow[1].longer_part, "queue_ns");
  EXPECT_EQ(slow[2].value, 40'000);
  EXPECT_EQ(slow[2].longer_part, "api_record_ns");
  EXPECT_TRUE(slow[2].is_odd());
  EXPECT_FALSE(slow[3].is_odd());
  EXPECT_EQ(slow[3].view_begin_ns, std::nullopt);
}

TEST_F(Timelines, AreForTheOddestTwoOfACase) {
  for (std::uint64_t i = 0; i < 5; ++i) slow(i, 100'000 - 1'000 * static_cast<double>(i), 4'000);
  std::vector<std::uint64_t> shown;
  for (const SlowSample& own : read_back()) {
    if (own.view_begin_ns) shown.push_back(own.info->record.sample);
  }
  EXPECT_THAT(shown, ElementsAre(0, 1));
}

TEST_F(Timelines, HaveWhatHappenedAroundTheSample) {
  slow(3, 100'000, 94'000, 100'000);
  job_.call(kBegin + 100, kBegin + 94'100, 1)
      .kernel(kBegin + 99'000, kBegin + 99'900, 1)
      .call(kBegin - 150'000, kBegin - 140'000, 2)  // in view: as long before it as it lasts twice
      .call(kBegin - 900'000, kBegin - 890'000, 3)
      .call(kBegin + 300'000, kBegin + 310'000, 4)
      .range(kBegin, kBegin + 100'000, "sample", "samples");
  const std::vector<SlowSample> slow = read_back();
  ASSERT_EQ(slow.size(), 1u);
  std::vector<std::string> found;
  for (const TimelineEvent& event : slow[0].events)
    found.push_back(event.row + ": " + event.name + " " + std::to_string(event.begin_ns));
  EXPECT_THAT(found,
              ElementsAre("main: cudaLaunchKernel -150000",
                          "samples: sample 0",
                          "main: cudaLaunchKernel 100",
                          "stream 7: a_kernel 99000"));
  EXPECT_EQ(slow[0].quiet_begin_ns, 94'100) << "between call and kernel";
  EXPECT_EQ(slow[0].quiet_ns, 4'900);
  EXPECT_THAT(slow[0].problem, IsEmpty());
}

TEST_F(Timelines, HaveTheNearestOfManyEventsAndTheLongestDuringTheSample) {
  slow(3, 100'000, 94'000, 100'000);
  for (std::int64_t i = 0; i < 1000; ++i)
    job_.call(kBegin + 100 * i, kBegin + 100 * i + (i == 777 ? 90 : 10), 1);
  const std::vector<SlowSample> slow = read_back();
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].events.size(), SlowSample::kEventsPerTimeline);
  EXPECT_EQ(slow[0].left_out, 1000 - SlowSample::kEventsPerTimeline);
  EXPECT_TRUE(std::ranges::any_of(
      slow[0].events, [](const TimelineEvent& event) { return event.begin_ns == 77'700; }));
  EXPECT_EQ(slow[0].quiet_ns, 90) << "of all events, and not of those that are shown";
}

TEST_F(Timelines, HaveNothingOfAnotherCase) {
  slow(3, 100'000, 94'000);
  job_.call(kBegin, kBegin + 10, 1);
  case_of_events_ = "launch/null/api:driver/mode:burst";
  EXPECT_THAT(read_back().at(0).events, IsEmpty());
}

TEST_F(Timelines, SayWhyTheyCannotBeRead) {
  slow(3, 100'000, 94'000);
  EXPECT_THAT(read_back().at(0).problem, HasSubstr("events/GPU-1.traced.launch.0.0.jsonl.gz"));
}

TEST_F(Timelines, NeedNoSampleThatIsKept) {
  slow(3, 100'000, 94'000);
  slow_.back().values.clear();
  slow(4, 90'000, 4'000);
  slow_.back().case_name = "launch/null/api:driver/mode:other";
  EXPECT_THAT(read_back(), IsEmpty()) << "no value, and no median";
}

/// "row kind name begin to end, bytes" of each event.
std::vector<std::string> events_of(const SlowSample& slow) {
  std::vector<std::string> lines;
  for (const TimelineEvent& event : slow.events)
    lines.push_back(fmt::format("{} {} {} {} to {}, {}",
                                event.row,
                                event.kind,
                                event.name,
                                event.begin_ns,
                                event.end_ns,
                                event.bytes));
  return lines;
}

TEST_F(Timelines, HaveEventsOfEveryKind) {
  slow(3, 100'000, 94'000, 100'000);
  job_.call(kBegin, kBegin + 1, 1)
      .call(kBegin + 10, kBegin + 11, 2, activity::Purpose::launch, "4242", "cuLaunchKernel")
      .call(0, kBegin + 12, 2)
      .kernel(kBegin + 20, kBegin + 21, 1)
      .graph(kBegin + 30, kBegin + 31, 3)
      .transfer(kBegin + 40, kBegin + 41, false)
      .transfer(kBegin + 50, kBegin + 51, true)
      .range(kBegin + 60, kBegin + 61, "step", "4242")
      .range(kBegin + 62, kBegin + 63, "load")
      .range(kBegin + 64, kBegin + 65, "sample", "samples");
  activity::Trace& trace = job_.process.trace;
  trace.overheads.push_back({kBegin + 70, kBegin + 71, 0, activity::OverheadKind::compiler});
  trace.waits.push_back({kBegin + 80, kBegin + 81, 0, 0});
  trace.memory.push_back({.at_ns = kBegin + 90, .bytes = 5});
  trace.memory.push_back({.at_ns = kBegin + 91, .bytes = 6, .release = true});
  using recording::AllocationAction;
  for (const auto action : {AllocationAction::allocate,
                            AllocationAction::give_back,
                            AllocationAction::release,
                            AllocationAction::fail}) {
    job_.process.allocations.push_back(
        {.at_ns = kBegin + 92 + static_cast<int>(action), .bytes = 7, .action = action});
  }
  EXPECT_THAT(events_of(read_back().at(0)),
              ElementsAre("main call cudaLaunchKernel 0 to 1, 0",
                          "thread 4242 call cuLaunchKernel 10 to 11, 0",
                          "stream 7 kernel a_kernel 20 to 21, 0",
                          "stream 7 graph graph 1 30 to 31, 0",
                          "stream 7 copy copy 40 to 41, 1024",
                          "stream 7 fill fill 50 to 51, 1024",
                          "ranges of thread 4242 range step 60 to 61, 0",
                          "ranges of main range load 62 to 63, 0",
                          "samples range sample 64 to 65, 0",
                          "driver and recorder overhead " +
                              std::string(activity::name_of(activity::OverheadKind::compiler)) +
                              " 70 to 71, 0",
                          "waits wait wait 80 to 81, 0",
                          "memory allocate allocate 90 to 90, 5",
                          "memory release release 91 to 91, 6",
                          "memory allocate allocate 92 to 92, 7",
                          "memory release release 94 to 94, 7"));
}

TEST_F(Timelines, OfSeveralGpusNameTheGpuOfAStream) {
  slow(3, 100'000, 94'000, 100'000);
  job_.kernel(kBegin + 1, kBegin + 2, 1).kernel(kBegin + 3, kBegin + 4, 2, recording::kOtherGpu);
  EXPECT_THAT(events_of(read_back().at(0)),
              ElementsAre("GPU 0 stream 7 kernel a_kernel 1 to 2, 0",
                          "GPU 1 stream 7 kernel a_kernel 3 to 4, 0"));
}

TEST_F(Timelines, HaveWhatTouchesTheirView) {
  slow(3, 100'000, 94'000, 30'000);
  job_.call(kBegin - 70'000, kBegin - 60'001, 1)
      .call(kBegin - 70'000, kBegin - 60'000, 2)
      .call(kBegin + 60'000, kBegin + 70'000, 3)
      .call(kBegin + 60'001, kBegin + 70'000, 4);
  const SlowSample slow = read_back().at(0);
  EXPECT_EQ(slow.view_begin_ns, -60'000);
  EXPECT_EQ(slow.view_end_ns, 60'000);
  EXPECT_THAT(events_of(slow),
              ElementsAre(HasSubstr("-70000 to -60000,"), HasSubstr("60000 to 70000,")));
  EXPECT_EQ(slow.quiet_ns, std::nullopt) << "nothing was recorded in the sample";
}

TEST_F(Timelines, OfEqualBeginsTheLongestComesFirst) {
  slow(3, 100'000, 94'000);
  job_.call(kBegin + 5, kBegin + 6, 1).call(kBegin + 5, kBegin + 7, 2).call(kBegin, kBegin + 1, 3);
  EXPECT_THAT(events_of(read_back().at(0)),
              ElementsAre(HasSubstr(" 0 to 1"), HasSubstr(" 5 to 7"), HasSubstr(" 5 to 6")));
}

TEST_F(Timelines, LeaveOutWhatIsFarthestFromTheSample) {
  for (const bool before_is_farther : {true, false}) {
    job_ = {};
    slow_.clear();
    slow(3, 100'000, 94'000, 1000);
    const std::int64_t before = before_is_farther ? 9 : 4;
    job_.call(kBegin - before - 1, kBegin - before, 1).call(kBegin + 1006, kBegin + 1007, 2);
    for (std::size_t i = 1; i < SlowSample::kEventsPerTimeline; ++i)
      job_.call(kBegin + 1, kBegin + 2, 3);
    std::filesystem::remove_all(path / "records");
    std::filesystem::remove_all(path / "events");
    std::filesystem::create_directories(path / "records");
    const SlowSample slow = read_back().at(0);
    EXPECT_EQ(slow.events.size(), SlowSample::kEventsPerTimeline);
    EXPECT_EQ(slow.left_out, 1u);
    EXPECT_EQ(slow.events.front().begin_ns < 0, !before_is_farther);
  }
}

TEST_F(Timelines, SayWhenItWasQuietLongest) {
  const struct {
    std::vector<std::pair<std::int64_t, std::int64_t>> calls;
    std::optional<std::int64_t> quiet_ns, begin_ns;
  } cases[] = {
      {{{0, 10'000}, {5'000, 8'000}, {30'000, 100'000}}, 20'000, 10'000},
      {{{0, 50'000}}, 50'000, 50'000},
      {{{40'000, 100'000}}, 40'000, 0},
      {{{20'000, 80'000}}, 20'000, 0},
      {{{-5, 60'000}, {50'000, 100'005}}, {}, {}},
      {{{0, 99'999}}, 1, 99'999},
      {{{-5, -1}}, {}, {}},
      {{{-5, 0}}, 100'000, 0},
      {{{100'000, 100'001}}, 100'000, 0},
      {{{100'001, 100'002}}, {}, {}},
  };
  for (const auto& [calls, quiet_ns, begin_ns] : cases) {
    job_ = {};
    slow_.clear();
    slow(3, 100'000, 94'000, 100'000);
    for (const auto& [begin, end] : calls) job_.call(kBegin + begin, kBegin + end, 1);
    std::filesystem::remove_all(path / "records");
    std::filesystem::remove_all(path / "events");
    std::filesystem::create_directories(path / "records");
    const SlowSample found = read_back().at(0);
    EXPECT_EQ(found.quiet_ns, quiet_ns);
    EXPECT_EQ(found.quiet_begin_ns, begin_ns);
  }
}

// --- Of a session that is put together here -----------------------------------------------------

SlowSampleInfo slow_sample(const std::string& case_name,
                           double launch_ns,
                           std::int64_t lasts_ns = 0,
                           const std::string& device = "GPU-1",
                           int replicate = 0) {
  SlowSampleInfo info;
  info.device = device;
  info.arm = "traced";
  info.process_config = ProcessConfig("launch");
  info.replicate = replicate;
  info.record.case_name = case_name;
  info.record.metric = "launch_ns";
  info.record.values = {{"launch_ns", launch_ns}};
  info.record.begin_ns = kBegin;
  info.record.end_ns = kBegin + lasts_ns;
  return info;
}

/// The rows that make 10 us usual for cases "launch/a" to "launch/d", 4 us of them in the call.
std::vector<SummaryRow> usual_rows() {
  std::vector<SummaryRow> rows;
  for (const char* const device : {"GPU-1", "GPU-2"}) {
    for (const char* const name : {"launch/a", "launch/b", "launch/c", "launch/d"}) {
      rows.push_back(a_row(device, name, "launch_ns", {10'000}, "traced"));
      rows.push_back(a_row(device, name, "api_record_ns", {4'000}, "traced"));
      rows.push_back(a_row(device, name, "queue_ns", {6'000}, "traced"));
      rows.push_back(a_row(device, name, "roundtrip_ns", {12'000}, "traced"));
      rows.push_back(a_row(device, name, "kernel_ns", {2'000}, "traced"));
    }
  }
  return rows;
}

TEST(SlowSampleParts, AreThoseThatTookHalfOfTheDifferenceLonger) {
  const struct {
    double launch_ns, call_ns;
    const char* part;
    std::optional<double> by_ns;
  } cases[] = {
      {20'000, 9'000, "api_record_ns", 5'000},
      {20'000, 8'999, "queue_ns", 5'001},
      {20'000, 9'001, "api_record_ns", 5'001},
      {10'001, 4'001, "api_record_ns", 1},
      {9'000, 4'000, "", {}},
      {9'000, 3'999, "", {}},
  };
  for (const auto& [launch_ns, call_ns, part, by_ns] : cases) {
    SessionData session;
    session.slow_samples = {slow_sample("launch/a", launch_ns)};
    session.slow_samples[0].record.values["api_record_ns"] = call_ns;
    session.slow_samples[0].record.values["queue_ns"] = launch_ns - call_ns;
    const SlowSample found = slow_samples_of(session, usual_rows()).at(0);
    EXPECT_EQ(found.longer_part, part) << launch_ns << " " << call_ns;
    EXPECT_EQ(found.longer_by_ns, by_ns);
  }
}

TEST(SlowSampleParts, OfARoundTripAreThreeAndNeedATimeAndAMedian) {
  SessionData session;
  session.slow_samples = {slow_sample("launch/a", 0)};
  SlowSampleRecord& record = session.slow_samples[0].record;
  record.metric = "roundtrip_ns";
  record.values = {{"roundtrip_ns", 22'000}, {"kernel_ns", 9'000}};
  EXPECT_EQ(slow_samples_of(session, usual_rows()).at(0).longer_part, "kernel_ns");
  record.values["kernel_ns"] = 6'000;
  EXPECT_EQ(slow_samples_of(session, usual_rows()).at(0).longer_part, "");
  record.values = {{"roundtrip_ns", 22'000}, {"api_record_ns", 9'000}, {"queue_ns", 12'000}};
  std::vector<SummaryRow> rows = usual_rows();
  EXPECT_EQ(slow_samples_of(session, rows).at(0).longer_part, "queue_ns");
  std::erase_if(rows, [](const SummaryRow& row) { return row.metric == "api_record_ns"; });
  EXPECT_EQ(slow_samples_of(session, rows).at(0).longer_part, "queue_ns");
  record.metric = "wait_ns";
  record.values["wait_ns"] = 100;
  rows.push_back(a_row("GPU-1", "launch/a", "wait_ns", {10}, "traced"));
  EXPECT_EQ(slow_samples_of(session, rows).at(0).longer_part, "");
}

TEST(SlowSamples, NeedAValueAndAMedianAboveZero) {
  SessionData session;
  const double inf = std::numeric_limits<double>::infinity();
  session.slow_samples = {
      slow_sample("launch/z", 5), slow_sample("launch/a", inf), slow_sample("launch/b", 20'000)};
  EXPECT_THAT(slow_samples_of(session, usual_rows()), SizeIs(1));
  std::vector<SummaryRow> rows = {a_row("GPU-1", "launch/b", "launch_ns", {0}, "traced")};
  EXPECT_THAT(slow_samples_of(session, rows), IsEmpty());
  rows[0].p50 = 1;
  EXPECT_THAT(slow_samples_of(session, rows), SizeIs(1));
  rows[0].p50.reset();
  EXPECT_THAT(slow_samples_of(session, rows), IsEmpty());
}

TEST(SlowSamples, StandByDeviceCaseRunAndSlowness) {
  SessionData session;
  session.slow_samples = {slow_sample("launch/a", 1, 0, "GPU-2"),
                          slow_sample("launch/b", 2),
                          slow_sample("launch/a", 3, 0, "GPU-1", 1),
                          slow_sample("launch/a", 4),
                          slow_sample("launch/a", 5)};
  std::vector<double> values;
  for (const SlowSample& own : slow_samples_of(session, usual_rows())) values.push_back(own.value);
  EXPECT_THAT(values, ElementsAre(5, 4, 3, 2, 1));
}

TEST(SlowSamples, ThatAreOddHaveTimelinesUpToSixOfADeviceAndTwoOfACase) {
  SessionData session;
  for (const char* const device : {"GPU-2", "GPU-1"}) {
    for (const auto& [name, ns] : {std::pair("launch/a", 90'000),
                                   {"launch/b", 80'000},
                                   {"launch/c", 70'000},
                                   {"launch/d", 60'000}}) {
      for (int i = 0; i < 3; ++i)
        session.slow_samples.push_back(slow_sample(name, ns - i, 0, device));
    }
  }
  std::vector<std::string> shown;
  for (const SlowSample& own : slow_samples_of(session, usual_rows())) {
    if (own.view_begin_ns) shown.push_back(fmt::format("{} {}", own.info->device, own.value));
  }
  EXPECT_THAT(shown,
              ElementsAre("GPU-1 90000",
                          "GPU-1 89999",
                          "GPU-1 80000",
                          "GPU-1 79999",
                          "GPU-1 70000",
                          "GPU-1 69999",
                          "GPU-2 90000",
                          "GPU-2 89999",
                          "GPU-2 80000",
                          "GPU-2 79999",
                          "GPU-2 70000",
                          "GPU-2 69999"));
}

TEST(SlowSamples, AreOddFromHalfAsLongAgainOn) {
  SessionData session;
  session.slow_samples = {slow_sample("launch/a", 15'000), slow_sample("launch/b", 14'999)};
  const std::vector<SlowSample> found = slow_samples_of(session, usual_rows());
  EXPECT_TRUE(found.at(0).view_begin_ns);
  EXPECT_FALSE(found.at(1).view_begin_ns);
}

TEST(SlowSamples, AreSeenWithTwiceTheirLengthBeforeAndOnceAfterWithinLimits) {
  const struct {
    std::int64_t lasts_ns, begin_ns, end_ns;
  } cases[] = {{0, -20'000, 20'000},
               {9'999, -20'000, 29'999},
               {10'001, -20'002, 30'001},
               {20'001, -40'002, 40'002},
               {499'999, -999'998, 999'998},
               {600'000, -1'000'000, 1'200'000},
               {3'000'000, -1'000'000, 4'000'000}};
  for (const auto& [lasts_ns, begin_ns, end_ns] : cases) {
    SessionData session;
    session.slow_samples = {slow_sample("launch/a", 20'000, lasts_ns)};
    const SlowSample found = slow_samples_of(session, usual_rows()).at(0);
    EXPECT_EQ(found.view_begin_ns, begin_ns);
    EXPECT_EQ(found.view_end_ns, end_ns);
  }
}

TEST(SlowSamples, HaveTheTelemetryOfTheirBlockAndWhatCountersCountedInIt) {
  SessionData session;
  session.slow_samples = {slow_sample("launch/a", 20'000)};
  session.slow_samples[0].record.block = 3;
  const auto reading = [&](int block, double value) -> TelemetryInfo& {
    TelemetryInfo& made = session.telemetry.emplace_back();
    made.device = "GPU-1";
    made.arm = "traced";
    made.process_config = ProcessConfig("launch");
    made.case_name = "launch/a";
    made.block = block;
    made.values = {
        {"involuntary_switches", 5 * value}, {"voluntary_switches", 7}, {"cpu_mhz", 100 * value}};
    return made;
  };
  reading(3, 91).device = "GPU-2";
  reading(3, 92).arm = "plain";
  reading(3, 93).process_config = ProcessConfig("launch+wait=block");
  reading(3, 94).replicate = 1;
  reading(3, 95).case_name = "launch/b";
  reading(4, 96);
  EXPECT_EQ(slow_samples_of(session, usual_rows()).at(0).telemetry, "");
  reading(3, 4).values["migrations"] = 9;
  EXPECT_EQ(slow_samples_of(session, usual_rows()).at(0).telemetry, "cpu_mhz 400");
  reading(2, 1).values["page_faults"] = 2;
  EXPECT_EQ(slow_samples_of(session, usual_rows()).at(0).telemetry,
            "involuntary_switches 15; cpu_mhz 400");
}

}  // namespace
}  // namespace launchgap
