#include "harness/summary/recorded_process.h"

#include <gmock/gmock.h>

#include "tests/device/a_device.h"

namespace launchgap {
namespace {

using namespace testing;

RecordingInfo a_recording(const std::string& file,
                          std::optional<std::uint64_t> pid = {},
                          std::optional<std::int64_t> rank = {},
                          const std::string& device = "GPU-1",
                          int replicate = 0) {
  RecordingInfo info;
  info.device = device;
  info.replicate = replicate;
  info.record.file = file;
  info.record.pid = pid;
  info.record.rank = rank;
  return info;
}

/// Two GPUs, the second of which has the index 5.
SessionData with_recordings(std::vector<RecordingInfo> recordings) {
  SessionData session;
  session.devices = {a_device("GPU-1", "A"), a_device("GPU-2", "A")};
  session.devices[1].index = 5;
  session.recordings = std::move(recordings);
  return session;
}

CaseData& of_case(SessionData& session,
                  const std::string& name,
                  const std::string& device = "GPU-1",
                  const std::string& arm = "recorded") {
  return session.cases[{device, arm, ProcessConfig(arm), CaseName::parse(name)}];
}

TEST(RecordedProcess, IsNamedByWhatTellsItFromTheOthers) {
  const struct {
    std::vector<RecordingInfo> recordings;
    std::vector<std::string> names;
  } cases[] = {
      {{a_recording("a", 7)}, {"a"}},
      {{a_recording("a", 7), a_recording("b", 7)}, {"a", "b"}},
      {{a_recording("a", 7), a_recording("a", 8)}, {"process 7", "process 8"}},
      {{a_recording("a", 7), a_recording("a", 8), a_recording("b", 9)},
       {"a, process 7", "a, process 8", "b"}},
      {{a_recording("a", 7, 3), a_recording("a", 8, 4)}, {"rank 3", "rank 4"}},
      {{a_recording("a", 7, 3), a_recording("b", 8, 3)}, {"a", "b"}},
      {{a_recording("a", {}, 3), a_recording("a", {}, 4)}, {"rank 3", "rank 4"}},
      {{a_recording("a", 7, 3), a_recording("a", 7, 3, "GPU-2"), a_recording("a", 8, 4)},
       {"rank 3, GPU 0", "rank 3, GPU 5", "rank 4"}},
      {{a_recording("a", 7), a_recording("a", 7, {}, "GPU-2"), a_recording("a", 8)},
       {"process 7, GPU 0", "process 7, GPU 5", "process 8"}},
      {{a_recording("a"), a_recording("a", {}, {}, "GPU-2"), a_recording("a", {}, {}, "GPU-9")},
       {"a, GPU 0", "a, GPU 5", "a"}},
  };
  for (const auto& [recordings, names] : cases) {
    const SessionData session = with_recordings(recordings);
    std::vector<std::string> found;
    for (const RecordedProcess& process : recorded_processes(session))
      found.push_back(process.where());
    EXPECT_EQ(found, names);
  }
}

TEST(RecordedProcess, HasWhatIsOfItsDeviceAndRun) {
  SessionData session =
      with_recordings({a_recording("a", 7, {}, "GPU-1", 1), a_recording("b", 8, {}, "GPU-2", 2)});
  for (const auto& [device, replicate, value] : {std::tuple("GPU-2", 1, 1),
                                                 std::tuple("GPU-1", 2, 2),
                                                 std::tuple("GPU-1", 1, 3),
                                                 std::tuple("GPU-1", 0, 4)}) {
    JobInfo& job = session.jobs.emplace_back();
    job.device = device;
    job.replicate = replicate;
    job.record.repeats = static_cast<std::uint64_t>(value);
    TraceInfo& trace = session.traces.emplace_back();
    trace.device = device;
    trace.replicate = replicate;
    trace.record.counts.emplace().launches = value;
    trace.record.kernels.emplace(static_cast<std::size_t>(value)).back().total_ns = 5;
    CaseData& data = of_case(session, "recorded/job", device);
    data.samples["step_ns"][replicate] = {8.0 * value, 1};
    data.samples["gpu_idle_share"][replicate] = {0.125 * value};
  }
  of_case(session, "recorded/job", "GPU-1", "plain").samples["step_ns"][1] = {1e6};
  const std::vector<RecordedProcess> processes = recorded_processes(session);
  const RecordedProcess& own = processes.at(0);
  EXPECT_TRUE(own.has_job);
  EXPECT_EQ(own.job.repeats, 3u);
  EXPECT_EQ(own.counts.launches, 3);
  ASSERT_TRUE(own.kernels);
  EXPECT_THAT(*own.kernels, SizeIs(3));
  EXPECT_EQ(own.total_kernel_ns(), 5);
  EXPECT_EQ(own.length_ns, 24);
  EXPECT_EQ(own.idle_share, 0.375);
  const RecordedProcess& other = processes.at(1);
  EXPECT_FALSE(other.has_job);
  EXPECT_FALSE(other.kernels);
  EXPECT_EQ(other.total_kernel_ns(), 0);
  EXPECT_EQ(other.length_ns, std::nullopt);
  EXPECT_EQ(other.idle_share, std::nullopt);
}

TEST(RecordedProcess, HasTheLaunchesOfEachStateAndAll) {
  SessionData session = with_recordings({a_recording("a")});
  of_case(session, "recorded/launch/stream:busy").samples["launch_ns"] = {{0, {1, 2}}, {1, {9}}};
  of_case(session, "recorded/launch/stream:idle").samples["launch_ns"] = {{0, {3}}};
  of_case(session, "recorded/launch/stream:unknown").samples["api_record_ns"] = {{0, {4}}};
  of_case(session, "recorded/launch/stream:wild").samples["launch_ns"] = {{1, {9}}};
  of_case(session, "recorded/graph/stream:idle").samples["launch_ns"] = {{0, {5}}};
  of_case(session, "recorded/launch/stream:z").samples["launch_ns"] = {{0, {6}}};
  const RecordedProcess process(session, session.recordings[0]);
  EXPECT_THAT(process.of_launches("launch_ns"), ElementsAre(1, 2, 3, 6));
  EXPECT_THAT(process.of_launches("launch_ns", "idle"), ElementsAre(3));
  EXPECT_THAT(process.of_launches("launch_ns", "busy"), ElementsAre(1, 2));
  EXPECT_THAT(process.of_graphs("launch_ns"), ElementsAre(5));
  EXPECT_EQ(process.of_job("step_ns"), std::nullopt);
}

TEST(RecordedProcess, SharesAreOfWhatHasALength) {
  const SessionData session = with_recordings({a_recording("a")});
  RecordedProcess process(session, session.recordings[0]);
  EXPECT_EQ(process.share(4), 0);
  EXPECT_EQ(process.share_of_extent(4), 0);
  process.length_ns = 0;
  EXPECT_EQ(process.share(4), 0);
  process.length_ns = 1;
  EXPECT_EQ(process.share(4), 4);
  process.length_ns = 8;
  EXPECT_EQ(process.share(4), 0.5);
  EXPECT_EQ(process.share_of_extent(4), 0.5) << "where nothing tells the extent";
  process.job.extent_ns = 0;
  EXPECT_EQ(process.share_of_extent(4), 0.5);
  process.job.extent_ns = 1;
  EXPECT_EQ(process.share_of_extent(4), 4);
  process.job.extent_ns = 16;
  EXPECT_EQ(process.share_of_extent(4), 0.25);
}

TEST(RecordedProcess, LaunchCallsHaveAShareOfTheExtentAtMost) {
  const SessionData session = with_recordings({a_recording("a")});
  RecordedProcess process(session, session.recordings[0]);
  EXPECT_EQ(process.launch_share(), std::nullopt);
  process.job.extent_ns = 16;
  LaunchTail& tail = process.job.tail.emplace();
  tail.time_ns = 8;
  EXPECT_EQ(process.launch_share(), 0.5);
  tail.covered_ns = 1;
  EXPECT_EQ(process.launch_share(), 0.0625);
  tail.time_ns = tail.covered_ns = 20;
  EXPECT_EQ(process.launch_share(), 1);
  TailPart part;
  part.time_ns = 8;
  EXPECT_EQ(process.share_of_calls(part), 0.5);
  part.covered_ns = 4;
  EXPECT_EQ(process.share_of_calls(part), 0.25);
}

TEST(RecordedProcess, WhatIsUnknownIsTheLargerOfTheSharesOfLaunchesAndTime) {
  const SessionData session = with_recordings({a_recording("a")});
  RecordedProcess process(session, session.recordings[0]);
  EXPECT_EQ(process.unknown_launches(), 0);
  process.counts.launches = 4;
  EXPECT_EQ(process.unknown_launches(), 0);
  process.counts.launches_without_kernel = 1;
  EXPECT_EQ(process.unknown_launches(), 0.25) << "of an older version's import";
  process.job.all_launches = 0;
  EXPECT_EQ(process.unknown_launches(), 0);
  process.job.all_launches = 1;
  EXPECT_EQ(process.unknown_launches(), 0);
  process.job.unknown_launches = 1;
  EXPECT_EQ(process.unknown_launches(), 1);
  process.job.all_launches = 8;
  EXPECT_EQ(process.unknown_share(), 0.125);
  process.length_ns = 16;
  EXPECT_EQ(process.unknown_share(), 0.125);
  process.job.unknown_ns = 1;
  EXPECT_EQ(process.unknown_share(), 0.125);
  process.job.unknown_ns = 8;
  EXPECT_EQ(process.unknown_share(), 0.5);
}

TEST(IdleLaunchShare, IsOfLaunchesWhoseStreamIsKnownAndWhoseClocksAgree) {
  SessionData session = with_recordings({a_recording("a"),
                                         a_recording("b", {}, {}, "GPU-1", 1),
                                         a_recording("c", {}, {}, "GPU-2", 2)});
  session.recordings[1].record.clock_problem = session.recordings[2].record.clock_problem = "late";
  const auto add = [&](const char* name,
                       const std::map<int, std::size_t>& counts,
                       const char* device = "GPU-1",
                       const char* arm = "recorded") {
    CaseData& data = of_case(session, name, device, arm);
    for (const auto& [replicate, n] : counts)
      data.samples["api_record_ns"][replicate] = std::vector<double>(n, 5);
  };
  EXPECT_EQ(idle_launch_share(session, "GPU-1"), std::nullopt);
  add("recorded/launch/stream:busy", {{0, 4}, {1, 100}, {2, 2}});
  add("recorded/launch/stream:unknown", {{0, 100}});
  add("recorded/graph/stream:idle", {{0, 1}, {1, 100}});
  add("recorded/launch/stream:idle", {{1, 100}, {2, 1}});
  add("recorded/job/stream:idle", {{0, 100}});
  add("recorded/launch/stream:idle", {{0, 100}}, "GPU-2");
  add("recorded/launch/stream:idle", {{0, 100}}, "GPU-1", "plain");
  of_case(session, "recorded/graph/stream:busy");
  EXPECT_EQ(idle_launch_share(session, "GPU-1"), 0.25);
  EXPECT_EQ(idle_launch_share(session, "GPU-2"), 1);
}

}  // namespace
}  // namespace launchgap
