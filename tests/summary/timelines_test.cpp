#include "harness/summary/timelines.h"

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

}  // namespace
}  // namespace launchgap
