#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "harness/import/readers.h"
#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using Action = AllocationAction;

// Pickles of protocol 0.
std::string number(std::int64_t value) {
  return "L" + std::to_string(value) + "L\n";
}
std::string text(const std::string& value) {
  return "V" + value + "\n";
}
std::string list(const std::vector<std::string>& items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "l";
}
std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string all = "(";
  for (const auto& [key, value] : items) all += text(key) + value;
  return all + "d";
}
std::string event(const std::string& action,
                  std::int64_t address,
                  std::int64_t size,
                  std::int64_t time_us,
                  std::int64_t stream = 0) {
  return dict({{"action", text(action)},
               {action == "oom" ? "device_free" : "addr", number(address)},
               {"size", number(size)},
               {"stream", number(stream)},
               {"time_us", number(time_us)},
               {"frames", list({})}});
}
std::string block(std::int64_t size, const std::string& state) {
  return dict({{"size", number(size)}, {"state", text(state)}});
}
std::string segment(std::int64_t gpu,
                    std::int64_t address,
                    const std::vector<std::string>& blocks) {
  return dict({{"device", number(gpu)}, {"address", number(address)}, {"blocks", list(blocks)}});
}
std::string snapshot(const std::vector<std::string>& segments,
                     const std::vector<std::string>& traces) {
  return dict({{"segments", list(segments)}, {"device_traces", list(traces)}});
}

struct TorchSnapshot : TextFile {
  Recording read(const std::string& pickle) const {
    return read_torch_snapshot(file(pickle + "."));
  }
  std::string refusal(const std::string& pickle) const {
    return error_of([&] { read(pickle); });
  }
};

TEST_F(TorchSnapshot, EventsAreTaken) {
  const Recording recording = read(snapshot({},
                                            {list({event("segment_alloc", 4096, 2 << 20, 9),
                                                   event("alloc", 4096, 512, 10, 77),
                                                   event("free_requested", 4096, 512, 11, 77),
                                                   event("free_completed", 4096, 512, 12, 77),
                                                   event("oom", 1000, 4 << 20, 13),
                                                   event("segment_unmap", 4096, 2 << 20, 14),
                                                   event("snapshot", 0, 0, 15)}),
                                             list({event("alloc", 4096, 1024, 11)})}));
  const Process& process = recording.processes.front();
  EXPECT_THAT(process.allocations,
              ElementsAre(Allocation{10'000, 4096, 512, 0, 77, 0, Action::allocate},
                          Allocation{11'000, 4096, 512, 0, 77, 0, Action::give_back},
                          Allocation{11'000, 4096, 1024, 1, 0, 0, Action::allocate},
                          Allocation{12'000, 4096, 512, 0, 77, 0, Action::release},
                          Allocation{13'000, 0, 4 << 20, 0, 0, 0, Action::fail}));
  ASSERT_EQ(process.trace.memory.size(), 2u);
  EXPECT_EQ(process.trace.memory[0], (activity::Memory{9'000, 4096, 2 << 20, 0, 0, 3, false, 0}));
  EXPECT_TRUE(process.trace.memory[1].release);
  EXPECT_EQ(recording.form, "pickle, protocol 0");
  EXPECT_EQ(recording.clock, "Unix time");
  EXPECT_TRUE(recording.remarks.empty());
  EXPECT_TRUE(recording.left_out.empty());
}

TEST_F(TorchSnapshot, StreamsAreAnyNumberOf64Bits) {
  const Recording recording = read(snapshot(
      {}, {list({event("alloc", 1, 512, 10, -1), event("alloc", 2, 512, 11, 1LL << 62)})}));
  EXPECT_EQ(recording.processes[0].allocations[0].stream, ~std::uint64_t{0});
  EXPECT_EQ(recording.processes[0].allocations[1].stream, std::uint64_t{1} << 62);
}

TEST_F(TorchSnapshot, WhatWasLiveBeforeTheWindowIsTold) {
  const Recording recording = read(snapshot({segment(0,
                                                     4096,
                                                     {block(512, "active_allocated"),
                                                      block(512, "inactive"),
                                                      block(1024, "active_pending_free")})},
                                            {list({event("alloc", 4096, 512, 10)})}));
  EXPECT_THAT(
      recording.remarks,
      ElementsAre(HasSubstr("1 block of 1 KiB in all, live at the end, came before the first "
                            "event: allocations before it are not recorded")));
}

TEST_F(TorchSnapshot, WithoutEventsWhatIsLiveHasNoOrder) {
  const std::vector<std::string> segments = {
      segment(1, 8192, {block(512, "active_allocated")}),
      segment(0, 4096, {block(512, "inactive"), block(256, "active_allocated")})};
  for (const auto& [pickle, says] :
       {std::pair(list(segments), "before PyTorch 2.1"),
        std::pair(snapshot(segments, {list({})}), "its device_traces are empty")}) {
    const Recording recording = read(pickle);
    EXPECT_THAT(recording.processes.front().allocations,
                ElementsAre(Allocation{1, 4608, 256, 0, 0, 0, Action::allocate},
                            Allocation{2, 8192, 512, 1, 0, 0, Action::allocate}));
    ASSERT_EQ(recording.remarks.size(), 1u);
    EXPECT_THAT(recording.remarks[0], HasSubstr(says));
    EXPECT_EQ(recording.clock, "none: events are numbered");
  }
}

TEST_F(TorchSnapshot, TheOrderHoldsWhereTimesGoBackOrAreMissing) {
  const std::string without =
      dict({{"action", text("free_completed")}, {"addr", number(1)}, {"size", number(512)}});
  const Recording recording =
      read(snapshot({}, {list({event("alloc", 1, 512, 10), event("alloc", 2, 512, 5), without})}));
  const auto& all = recording.processes.front().allocations;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].at_ns, all[0].at_ns);
  EXPECT_EQ(all[2].at_ns, all[1].at_ns + 1);
  EXPECT_THAT(
      recording.remarks,
      ElementsAre(HasSubstr("1 events have no time"), HasSubstr("the times of 1 events go back")));
}

TEST_F(TorchSnapshot, WhatCannotBeTakenIsCounted) {
  const Recording recording = read(snapshot({},
                                            {list({event("alloc", 1, 512, 10),
                                                   event("alloc", -4096, 512, 11),
                                                   event("alloc", 2, 0, 12),
                                                   event("worker_restart", 2, 1, 13)})}));
  EXPECT_EQ(recording.processes.front().allocations.size(), 1u);
  std::vector<std::string> what;
  for (const LeftOut& left_out : recording.left_out) what.push_back(left_out.what);
  EXPECT_THAT(what,
              UnorderedElementsAre("events without an address that can be",
                                   "events of no bytes",
                                   "events \"worker_restart\""));
}

TEST_F(TorchSnapshot, TimesOfEachGpuRiseByThemselves) {
  const Recording recording = read(
      snapshot({},
               {list({event("alloc", 1, 512, 10), event("alloc", 2, 512, 10)}),
                list({event("alloc", 3, 512, 0), event("alloc", 4, 512, 9'223'372'036'854'775)})}));
  const auto& all = recording.processes.front().allocations;
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].at_ns, 1) << "0 is a time that is not known";
  EXPECT_EQ(all[1].at_ns, 10'000);
  EXPECT_EQ(all[2].at_ns, 10'000);
  EXPECT_EQ(all[3].at_ns, 9'223'372'036'854'775'000);
  EXPECT_THAT(recording.remarks, IsEmpty());
  EXPECT_THAT(refusal(snapshot({}, {list({event("alloc", 1, 1, 9'223'372'036'854'776)})})),
              HasSubstr("device_traces[0][0] has a time_us that cannot be"));
}

TEST_F(TorchSnapshot, SizesAndGpusReachToTheirLimits) {
  const Recording recording = read(snapshot({}, {list({event("alloc", 1, 1LL << 50, 10)})}));
  EXPECT_EQ(recording.processes[0].allocations.at(0).bytes, std::uint64_t{1} << 50);
  EXPECT_THAT(refusal(snapshot({}, {list({event("alloc", 1, (1LL << 50) + 1, 10)})})),
              HasSubstr("device_traces[0][0] has a size that cannot be"));
  std::vector<std::string> traces(1024, list({}));
  traces.back() = list({event("alloc", 1, 1, 10)});
  EXPECT_EQ(read(snapshot({}, traces)).processes[0].allocations.at(0).gpu, 1023u);
  traces.push_back(list({}));
  EXPECT_EQ(refusal(snapshot({}, traces)), "device_traces[1024] is of a GPU that cannot be");
  const std::vector<std::string> live = {block(1, "active_allocated")};
  EXPECT_EQ(read(snapshot({segment(1023, 1, live)}, {})).processes[0].allocations.at(0).gpu, 1023u);
  EXPECT_EQ(refusal(snapshot({segment(1024, 1, live)}, {})),
            "segments[0] has no device, address or blocks that can be");
}

TEST_F(TorchSnapshot, SegmentsHaveADeviceAnAddressAndBlocks) {
  const std::pair<std::string, std::string> all[] = {
      {"device", number(0)}, {"address", number(1)}, {"blocks", list({})}};
  for (std::size_t missing = 0; missing < 3; ++missing) {
    std::vector<std::pair<std::string, std::string>> others;
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != missing) others.push_back(all[i]);
    }
    EXPECT_EQ(refusal(snapshot({dict(others)}, {})),
              "segments[0] has no device, address or blocks that can be");
  }
}

TEST_F(TorchSnapshot, BlocksHaveTheirOwnAddressOrThatBehindTheOneBefore) {
  const auto with = [](std::vector<std::pair<std::string, std::string>> more,
                       std::int64_t size,
                       const char* state) {
    more.emplace_back("size", number(size));
    more.emplace_back("state", text(state));
    return dict(more);
  };
  const Recording recording =
      read(list({dict({{"device", number(0)},
                       {"address", number(100)},
                       {"stream", number(7)},
                       {"blocks",
                        list({block(10, "inactive"),
                              with({{"requested_size", number(5)}}, 20, "active_allocated"),
                              with({{"address", number(500)}}, 30, "active_pending_free"),
                              block(40, "active_allocated"),
                              with({{"requested_size", number(0)}}, 50, "active_allocated"),
                              block(0, "active_allocated"),
                              block(60, "active_allocated")})}}),
                 segment(0, 50, {block(1, "active_allocated")})}));
  EXPECT_THAT(recording.processes.front().allocations,
              ElementsAre(Allocation{1, 50, 1, 0, 0, 0, Action::allocate},
                          Allocation{2, 110, 5, 0, 7, 0, Action::allocate},
                          Allocation{3, 500, 30, 0, 7, 0, Action::allocate},
                          Allocation{4, 530, 40, 0, 7, 0, Action::allocate},
                          Allocation{5, 620, 60, 0, 7, 0, Action::allocate}));
  EXPECT_THAT(refusal(list({segment(0, 1, {block(1, "x"), number(1)})})),
              HasSubstr("segments[0].blocks[1] is no dict"));
  EXPECT_THAT(refusal(list({segment(0, 1, {}),
                            segment(0, 1, {block(1, "x"), dict({{"state", text("x")}})})})),
              HasSubstr("segments[1].blocks[1] has a size that cannot be"));
  EXPECT_THAT(refusal(list({segment(0, 1, {with({{"requested_size", text("x")}}, 5, "active")})})),
              HasSubstr("segments[0].blocks[0] has a requested_size that cannot be"));
  EXPECT_THAT(refusal(list({segment(0, 1, {dict({{"size", number(1)}, {"state", number(1)}})})})),
              HasSubstr("segments[0].blocks[0] has no state"));
  EXPECT_THAT(refusal(list({segment(0, 1, {block(5, "inactive"), block(0, "active")})})),
              HasSubstr("nothing was live"));
}

TEST_F(TorchSnapshot, WithoutEventsTimesAreNoUnixTimes) {
  const Recording recording =
      read(snapshot({segment(0, 1, {block(5, "active")})}, {list({event("snapshot", 0, 0, 15)})}));
  EXPECT_EQ(recording.clock, "none: events are numbered");
  EXPECT_EQ(recording.processes.front().allocations.size(), 1u);
}

TEST_F(TorchSnapshot, OnlyWhatTheWindowAllocatedIsOfTheWindow) {
  const auto live = [](std::int64_t gpu) {
    return segment(gpu, 100, {block(8, "active"), block(16, "active"), block(32, "active")});
  };
  const Recording recording = read(snapshot({live(0), live(1)},
                                            {list({event("alloc", 100, 8, 10),
                                                   event("free_requested", 100, 8, 11),
                                                   event("alloc", 108, 16, 12),
                                                   event("free_completed", 108, 16, 13),
                                                   event("oom", 0, 1, 14)}),
                                             list({event("alloc", 124, 32, 10)})}));
  // The second and the third of the first GPU, the first and the second of the other.
  EXPECT_THAT(recording.remarks, ElementsAre(HasSubstr("4 blocks of 72 B in all")));
}

TEST_F(TorchSnapshot, StreamsThatAreNoneAreTheDefaultOne) {
  const auto with_stream = [](const std::string& stream) {
    return dict({{"action", text("alloc")},
                 {"addr", number(1)},
                 {"size", number(1)},
                 {"time_us", number(1)},
                 {"stream", stream}});
  };
  const Recording recording = read(snapshot({}, {list({with_stream(text("x"))})}));
  EXPECT_EQ(recording.processes[0].allocations.at(0).stream, 0u);
}

/// By memo an entry takes three bytes.
TEST_F(TorchSnapshot, EntriesAreNoMoreThanTheirBytesHaveRoomFor) {
  const auto with = [&](std::size_t entries, std::size_t bytes) {
    std::string trace = "(" + event("alloc", 1, 1, 1) + "p9\n";
    for (std::size_t i = 1; i < entries; ++i) trace += "g9\n";
    trace += "l";
    std::string whole = snapshot({}, {trace});
    const std::size_t padding = bytes - whole.size() - 4;  // "V", its end, "0" and the last "."
    return "V" + std::string(padding, 'x') + "\n0" + whole;
  };
  constexpr std::size_t kEntries = 40;
  EXPECT_EQ(read(with(kEntries, 16 * kEntries)).processes[0].allocations.size(), kEntries);
  EXPECT_EQ(refusal(with(kEntries, 16 * kEntries - 1)),
            "device_traces[0][39] is more than the bytes of the file have room for");
}

TEST_F(TorchSnapshot, ListsMayBeTuplesAndEmptyOnesStandTwice) {
  std::string tuple = list({event("alloc", 1, 1, 1)});
  tuple.back() = 't';
  EXPECT_EQ(read(snapshot({}, {tuple})).processes[0].allocations.size(), 1u);
  EXPECT_EQ(read(snapshot({}, {list({}) + "p9\n", "g9\n", tuple})).processes[0].allocations.size(),
            1u);
  EXPECT_EQ(read(dict({{"segments", list({segment(0, 1, {block(5, "active")})})}}))
                .processes[0]
                .allocations.size(),
            1u)
      << "without traces";
}

TEST_F(TorchSnapshot, LongActionsAreCut) {
  const std::string longest(40, 'x');
  for (const bool longer : {false, true}) {
    const Recording recording = read(snapshot(
        {}, {list({event("alloc", 1, 1, 1), event(longest + (longer ? "x" : ""), 1, 1, 1)})}));
    ASSERT_EQ(recording.left_out.size(), 1u);
    EXPECT_EQ(recording.left_out[0].what == "events \"" + longest + "\"", !longer);
  }
}

TEST_F(TorchSnapshot, WhatCannotBeNamesItsEntry) {
  const std::string good = event("alloc", 1, 512, 10);
  const struct {
    std::string pickle, says;
  } cases[] = {
      {text("x"), "no memory snapshot of PyTorch"},
      {dict({}), "it has no list \"segments\""},
      {snapshot({}, {}), "it has no events, and nothing was live"},
      {snapshot({}, {number(1)}), "device_traces[0] is no list"},
      {snapshot({}, {list({good, text("x")})}), "device_traces[0][1] is no dict"},
      {snapshot({}, {list({}), list({dict({{"action", number(1)}})})}),
       "device_traces[1][0] has no action"},
      {snapshot({}, {list({event("alloc", 1, -512, 10)})}),
       "device_traces[0][0] has a size that cannot be"},
      {snapshot({}, {list({event("alloc", 1, 1LL << 60, 10)})}), "has a size that cannot be"},
      {snapshot({}, {list({event("alloc", 1, 512, -10)})}), "has a time_us that cannot be"},
      {snapshot({}, {list({event("alloc", 1, 512, 1LL << 62)})}), "has a time_us that cannot be"},
      {snapshot({text("x")}, {}), "segments[0] is no dict"},
      {snapshot({segment(-1, 1, {})}, {}), "segments[0] has no device"},
      {snapshot({segment(0, 1, {block(-5, "inactive")})}, {}), "segments[0].blocks[0] has a size"},
      {snapshot({segment(0, 1, {dict({{"size", number(1)}})})}, {}),
       "segments[0].blocks[0] has no state"},
      // A list that stands twice is worth no more events than its bytes.
      {snapshot({}, {list({good}) + "p9\n", "g9\n"}),
       "device_traces[1] is a list that stands elsewhere too"},
  };
  for (const auto& [pickle, says] : cases) EXPECT_THAT(refusal(pickle), HasSubstr(says));
}

}  // namespace
}  // namespace launchgap::recording
