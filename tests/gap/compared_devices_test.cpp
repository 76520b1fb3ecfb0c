#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/gap/gap.h"
#include "tests/gap/two_gpus.h"

namespace launchgap::gap {
namespace {

using namespace testing;

constexpr const char* kIdle = "launch/null/api:driver/mode:idle";

/// "GPU-2", the reference with a star.
std::vector<std::string> devices(Sessions& sessions) {
  std::vector<std::string> ids;
  for (const GapDeviceRow& row : compared_devices(sessions.compared()))
    ids.push_back(row.device + (row.reference ? "*" : ""));
  return ids;
}

/// "GPU-2 api_ns: 2.0× faster".
std::vector<std::string> ratios(Sessions& sessions) {
  std::vector<std::string> all;
  each_ratio(sessions.compared(), [&](const GapRatioRow& row) {
    all.push_back(row.key->device + " " + std::string(row.metric) + ": " + row.words);
  });
  return all;
}

TEST(ComparedDevices, StandInTheOrderOfReleaseAndTheOldestGpuIsTheReference) {
  Sessions sessions;
  for (const char* name : {"NVIDIA H200", "Tesla K40m", "NVIDIA A100-SXM4-80GB"}) {
    sessions.add(name);
    sessions.measured(kIdle, "api_ns", {1, 1});
  }
  sessions.add("AMD EPYC 9654").devices[0].backend = "host";
  EXPECT_THAT(devices(sessions), ElementsAre("GPU-4", "GPU-2*", "GPU-3", "GPU-1"));
}

TEST(ComparedDevices, WithoutAGpuTheFirstHostIsTheReference) {
  Sessions sessions;
  for (const char* name : {"Xeon", "EPYC"}) sessions.add(name).devices[0].backend = "host";
  EXPECT_THAT(devices(sessions), ElementsAre("GPU-2*", "GPU-1"));
}

TEST(ComparedDevices, AreNoneWhereOneSessionHasOneGeneration) {
  Sessions sessions;
  SessionData& one = sessions.add("NVIDIA H200", "9.0");
  one.devices.push_back(one.devices[0]);
  one.devices[1].uuid = "GPU-other";
  sessions.measured(kIdle, "api_ns", {1, 1});
  EXPECT_THAT(devices(sessions), IsEmpty());
  EXPECT_THAT(ratios(sessions), IsEmpty());
  sessions.add("Tesla K40m", "3.5").devices[0].usable = false;
  EXPECT_THAT(devices(sessions), IsEmpty()) << "of which nothing was measured";
}

TEST(ComparedDevices, AreNotThoseOfRecordedJobs) {
  Sessions sessions;
  sessions.add("NVIDIA H200");
  sessions.add("NVIDIA A100-SXM4-80GB");
  sessions.add("Tesla K40m").runs.emplace_back().arm = kRecorded;
  EXPECT_THAT(devices(sessions), ElementsAre("GPU-2*", "GPU-1"));
}

TEST(Ratios, OfLessTimeAndOfMoreThroughputAreBothFaster) {
  Sessions sessions;
  for (const double factor : {1.0, 2.0}) {
    sessions.add(factor > 1 ? "NVIDIA H200" : "Tesla K40m");
    sessions.measured(kIdle, "api_ns", {10 / factor, 10 / factor});
    sessions.measured("matmul/library/size:1024/type:fp32", "tflops", {factor, factor});
    sessions.measured("launch/graph/mode:idle", "kernels", {9 * factor, 9 * factor});
  }
  EXPECT_THAT(
      ratios(sessions),
      ElementsAre(
          "GPU-2 kernels: 2.0× worse", "GPU-2 api_ns: 2.0× faster", "GPU-2 tflops: 2.0× faster"));
}

TEST(Ratios, MeetByADevicesOwnLaunchPath) {
  Sessions sessions;
  sessions.add("EPYC").devices[0].backend = "host";
  sessions.measured("launch/null/api:queue/mode:idle", "api_ns", {5, 5}, "plain", "host clock");
  sessions.add("NVIDIA H200");
  sessions.measured(kIdle, "api_ns", {10, 10}, "plain", "device events");
  sessions.measured("launch/null/api:runtime/mode:idle", "api_ns", {10, 10});
  EXPECT_THAT(ratios(sessions), ElementsAre("GPU-1 api_ns: 2.0× faster"))
      << "a host is timed in its own way";
}

TEST(Ratios, AreNotFormedOfWhatIsSimulatedOrTimedInAnotherWay) {
  Sessions sessions;
  sessions.add("Tesla K40m");
  sessions.measured(kIdle, "api_ns", {10, 10}, "plain", "native kernel, host clock");
  sessions.add("NVIDIA A100-SXM4-80GB", "", true);
  sessions.measured(kIdle, "api_ns", {5, 5}, "plain", "native kernel, host clock");
  sessions.add("NVIDIA H100 80GB HBM3");
  sessions.measured(kIdle, "api_ns", {5, 5}, "plain", "portable kernel, host clock");
  sessions.add("NVIDIA H200");
  sessions.measured(kIdle, "api_ns", {5, 5}, "plain", "native kernel, device events");
  EXPECT_THAT(ratios(sessions),
              ElementsAre("GPU-2 api_ns: not compared: one is simulated",
                          "GPU-3 api_ns: 2.0× faster",
                          "GPU-4 api_ns: not compared: timed in another way"));
}

TEST(Ratios, OfRunsThatOverlapAreWithinTheNoise) {
  Sessions sessions;
  sessions.add("Tesla K40m");
  sessions.measured(kIdle, "api_ns", {10, 14, 8, 11});
  sessions.add("NVIDIA H200");
  sessions.measured(kIdle, "api_ns", {9, 13, 7, 10});
  EXPECT_THAT(ratios(sessions), ElementsAre("GPU-2 api_ns: 1.11× faster, within the noise"));
}

TEST(Ratios, OfAPublishedValueMeetPlainOnes) {
  Sessions sessions;
  sessions.add("Tesla K40m").runs.emplace_back().arm = kPublished;
  sessions.measured(kIdle, "api_ns", {10}, "published");
  sessions.add("NVIDIA H200");
  sessions.measured(kIdle, "api_ns", {9.9, 9.9});
  EXPECT_THAT(ratios(sessions), ElementsAre("GPU-2 api_ns: equal"));
}

/// A job on a GPU: its launches took 4 us where they found their stream idle.
SessionData& add_job(Sessions& sessions, const std::string& gpu) {
  SessionData& job = sessions.add(gpu);
  job.runs.emplace_back().arm = kRecorded;
  sessions.measured(
      "recorded/launch/stream:idle", "api_record_ns", {4000, 4000}, std::string(kRecorded));
  sessions.measured(
      "recorded/launch/stream:idle", "launch_ns", {6000, 6000}, std::string(kRecorded));
  return job;
}

/// "GPU-2 api_ns: 2.0", with a star where both have one name.
std::vector<std::string> beside(Sessions& sessions) {
  std::vector<std::string> all;
  for (const GapRecordedRow& row : recorded_beside_measured(sessions.compared()))
    all.push_back(fmt::format("{}{} {}: {:.1f}",
                              row.key->device,
                              row.same_name ? "*" : "",
                              row.measured_metric,
                              row.times));
  return all;
}

TEST(RecordedLaunches, StandBesideTheEmptyLaunchOfTheGpuOfTheirName) {
  Sessions sessions;
  add_job(sessions, "NVIDIA H200");
  sessions.add("Tesla K40m");
  sessions.measured(kIdle, "api_ns", {1000, 1000});
  sessions.add("NVIDIA H200");
  sessions.measured("launch/null/api:chevron/mode:idle", "api_ns", {1, 1});
  sessions.measured(kIdle, "api_ns", {2000, 2000});
  sessions.measured("launch/null/api:driver/mode:burst", "api_ns", {1, 1});
  EXPECT_THAT(beside(sessions), ElementsAre("GPU-3* api_ns: 2.0"));
  sessions.measured(kIdle, "api_record_ns", {2500, 2500}, "traced");
  sessions.measured(kIdle, "launch_ns", {3000, 3000}, "traced");
  EXPECT_THAT(
      beside(sessions),
      ElementsAre("GPU-3* api_ns: 2.0", "GPU-3* api_record_ns: 1.6", "GPU-3* launch_ns: 2.0"));
}

TEST(RecordedLaunches, StandBesideEveryMeasuredGpuWhereNoneHasTheirName) {
  Sessions sessions;
  add_job(sessions, "NVIDIA GeForce RTX 3090");
  for (const char* name : {"Tesla K40m", "NVIDIA H200", "NVIDIA A100-SXM4-80GB", "EPYC"}) {
    sessions.add(name);
    sessions.measured(kIdle, "api_ns", {2000, 2000});
  }
  sessions.session(3).devices[0].simulated = true;
  sessions.session(4).devices[0].backend = "host";
  EXPECT_THAT(beside(sessions), ElementsAre("GPU-2 api_ns: 2.0", "GPU-3 api_ns: 2.0"));
}

TEST(RecordedLaunches, StandBesideNothingWhereNoStreamIsKnownToBeIdle) {
  Sessions sessions;
  SessionData& job = add_job(sessions, "NVIDIA H200");
  sessions.add("NVIDIA H200");
  sessions.measured(kIdle, "api_ns", {2000, 2000});
  ASSERT_EQ(beside(sessions).size(), 1u);
  for (const int replicate : {0, 1}) {
    job.recordings.push_back({{"GPU-1", "", {}, replicate}, {}});
    job.recordings.back().record.clock_problem = "the clocks disagree";
    EXPECT_EQ(beside(sessions).size(), 1u - static_cast<std::size_t>(replicate)) << replicate;
  }
}

}  // namespace
}  // namespace launchgap::gap
