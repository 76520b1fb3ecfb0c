#include "harness/gap/compared_devices.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace launchgap::gap
