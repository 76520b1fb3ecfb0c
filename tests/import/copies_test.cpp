#include <gmock/gmock.h>

#include "harness/import/repairs.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

Recording recording_of(Job job) {
  Recording recording;
  recording.processes.push_back(std::move(job.process));
  return recording;
}

TEST(Copies, RecordsThatAreThereThreeTimesCountOnce) {
  Job job = steady(20);
  const auto calls = job.process.trace.calls;
  const auto kernels = job.process.trace.kernels;
  for (int i = 0; i < 2; ++i) {
    job.process.trace.calls.insert(job.process.trace.calls.end(), calls.begin(), calls.end());
    job.process.trace.kernels.insert(
        job.process.trace.kernels.end(), kernels.begin(), kernels.end());
  }
  Recording recording = recording_of(std::move(job));
  drop_copies(recording);
  EXPECT_EQ(recording.processes[0].trace.calls, calls);
  EXPECT_EQ(recording.processes[0].trace.kernels, kernels);
  ASSERT_EQ(recording.left_out.size(), 2u);
  EXPECT_EQ(recording.left_out[1].what, "kernels that are in the file more than once");
  EXPECT_EQ(recording.left_out[1].count, 40u);
}

TEST(Copies, AFewThatLookAlikeStay) {
  Job job = steady(200);
  job.process.trace.kernels.push_back(job.process.trace.kernels.back());
  Recording recording = recording_of(std::move(job));
  drop_copies(recording);
  EXPECT_EQ(recording.processes[0].trace.kernels.size(), 201u);
  EXPECT_TRUE(recording.left_out.empty());
}

TEST(Copies, AreLeftOutFromAQuarterOnAndFromTenOfAThousandOn) {
  const auto left_out = [](int records, std::size_t copies) {
    Job job = steady(records);
    auto& kernels = job.process.trace.kernels;
    for (std::size_t i = 0; i < copies; ++i) kernels.push_back(kernels[i]);
    Recording recording = recording_of(std::move(job));
    drop_copies(recording);
    return recording.left_out.size();
  };
  EXPECT_EQ(left_out(9, 3), 1u) << "3 of 12";
  EXPECT_EQ(left_out(10, 3), 0u) << "3 of 13";
  EXPECT_EQ(left_out(990, 10), 1u) << "10 of 1000";
  EXPECT_EQ(left_out(991, 10), 0u);
  EXPECT_EQ(left_out(791, 9), 0u) << "more than 1 in 100, and fewer than 10";
}

TEST(Copies, ADigestTellsRanksAndTimesApart) {
  Job one = steady(20), other = steady(20), later = steady(21), ranked = steady(20);
  ranked.process.rank = 1;
  EXPECT_EQ(digest_of(one.process), digest_of(other.process));
  EXPECT_NE(digest_of(one.process), digest_of(later.process));
  EXPECT_NE(digest_of(one.process), digest_of(ranked.process));
}

TEST(Copies, OfCopiesAndGraphsAreLeftOutTooAndRecordsWithoutTimesAreNone) {
  Job job;
  for (int i = 0; i < 2; ++i) {
    job.transfer(100, 200, true).transfer(100, 200, false).graph(300, 400, 1).call(0, 50, 1);
    job.transfer(100, 201, true).transfer(0, 200, true);
  }
  Recording recording = recording_of(std::move(job));
  drop_copies(recording);
  const activity::Trace& trace = recording.processes[0].trace;
  EXPECT_EQ(trace.transfers.size(), 5u);
  EXPECT_EQ(trace.graphs.size(), 1u);
  EXPECT_EQ(trace.calls.size(), 2u);
  ASSERT_EQ(recording.left_out.size(), 2u);
  EXPECT_EQ(recording.left_out[0].what, "copies and fills that are in the file more than once");
  EXPECT_EQ(recording.left_out[0].count, 3u);
  EXPECT_EQ(recording.left_out[1].what, "graphs that are in the file more than once");
}

}  // namespace
}  // namespace launchgap::recording
