#include <string>

#include <gmock/gmock.h>

#include "harness/import/readers.h"
#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;

constexpr std::int64_t kSecond = 1'000'000'000, kDay = 86'400 * kSecond;
const std::string kHead = "Thread,Time,Action,Pointer,Size,Stream\n";
const std::string kHead2019 =
    "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,"
    "Start,End,Elapsed,Location\n";

struct RmmLog : TextFile {
  Recording read(const std::string& text) const { return read_rmm_log(file(text)); }
  std::vector<Allocation> events(const std::string& text) const {
    return read(text).processes.front().allocations;
  }
  std::string refusal(const std::string& text) const {
    return error_of([&] { read(text); });
  }
};

TEST_F(RmmLog, AllThatALineSaysIsTaken) {
  const Recording recording = read(kHead +
                                   "101,12:00:00.000001,allocate,0x7f0100,256,0x7f8a38001020\r\n"
                                   "102,12:00:00.000002,free,0x7f0100,256,0x7f8a38001020\r\n"
                                   "102,12:00:01.000000,allocate failure,(nil),132870728,0\r\n");
  const Process& process = recording.processes.front();
  EXPECT_THAT(process.threads, ElementsAre("101", "102"));
  const std::int64_t noon = kDay + kDay / 2;
  using Action = AllocationAction;
  EXPECT_THAT(
      process.allocations,
      ElementsAre(Allocation{noon + 1000, 0x7f0100, 256, 0, 0x7f8a38001020, 0, Action::allocate},
                  Allocation{noon + 2000, 0x7f0100, 256, 0, 0x7f8a38001020, 1, Action::release},
                  Allocation{noon + kSecond, 0, 132870728, 0, 0, 1, Action::fail}));
  EXPECT_EQ(recording.recorder, "RMM");
  EXPECT_TRUE(recording.left_out.empty());
}

TEST_F(RmmLog, OnlyWhatGoesBackIsSaidToGoBack) {
  const auto remarks = [&](const char* second) {
    return read(kHead + "1,12:00:00.000002,allocate,0x10,256,0\n1,12:00:00." + second +
                ",allocate,0x20,256,0\n")
        .remarks;
  };
  EXPECT_THAT(remarks("000002"), IsEmpty());
  EXPECT_THAT(remarks("000001"), Contains(HasSubstr("go back")));
}

/// RMM wrote streams as decimal numbers in 2020, when a colon stood before the microseconds; since
/// then as pointers.
TEST_F(RmmLog, StreamsAreNumbersOfTheirDialect) {
  const auto stream = [&](const std::string& time, const std::string& text) {
    return events(kHead + "1," + time + ",allocate,0x10,256," + text + "\n").front().stream;
  };
  EXPECT_EQ(stream("12:00:00.000000", "0x7f8a38001020"), 0x7f8a38001020u);
  EXPECT_EQ(stream("12:00:00.000000", "10"), 0x10u);
  EXPECT_EQ(stream("12:00:00.000000", "(nil)"), 0u);
  EXPECT_EQ(stream("12:00:00:000000", "140231621742624"), 140231621742624u);
  EXPECT_EQ(stream("12:00:00:000000", "0x10"), 0x10u);
  EXPECT_EQ(stream("12:00:00.000000", "0xFFFFFFFFFFFFFFFF"), ~std::uint64_t{0});
}

TEST_F(RmmLog, TimesRiseOnAfterMidnight) {
  const auto all = events(kHead +
                          "1,23:59:59.500000,allocate,0x10,256,0\n"
                          "1,00:00:00.500000,free,0x10,256,0\n"
                          "1,23:00:00.000000,allocate,0x10,256,0\n"
                          "1,01:00:00.000000,free,0x10,256,0\n");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].at_ns - all[0].at_ns, kSecond);
  EXPECT_EQ(all[3].at_ns - all[2].at_ns, 7200 * kSecond);
}

TEST_F(RmmLog, AClockThatGoesBackIsCounted) {
  const Recording recording = read(kHead +
                                   "1,12:00:02.000000,allocate,0x10,256,0\n"
                                   "1,12:00:01.000000,free,0x10,256,0\n"
                                   "1,12:00:03.000000,allocate,0x10,256,0\n");
  const auto& all = recording.processes.front().allocations;
  EXPECT_EQ(all[0].at_ns, all[1].at_ns);
  EXPECT_EQ(all[2].at_ns - all[1].at_ns, kSecond);
  EXPECT_THAT(recording.remarks,
              ElementsAre(HasSubstr("the times of 1 lines go back, first on line 3")));
}

TEST_F(RmmLog, TheDialectOf2019HasGpusAndSecondsSinceItsStart) {
  const auto all = events(kHead2019 +
                          "Alloc,1,0x7f613be00000,0,720984,0,0,1,41.7014,41.7016,0.000156924,"
                          "\"/home/a,b/rmm.cu:85\"\n"
                          "Free,1,0x7f613be00000,0,0,0,0,0,41.8,41.9,1e-05,/home/a,b/rmm.cu:90\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(
      all[0],
      (Allocation{41'701'600'001, 0x7f613be00000, 720984, 1, 0, 0, AllocationAction::allocate}));
  EXPECT_EQ(all[1].action, AllocationAction::release);
  EXPECT_EQ(all[1].at_ns, 41'900'000'001);
}

TEST_F(RmmLog, WhatCannotBeTakenIsCounted) {
  const Recording recording = read(kHead2019 +
                                   "Alloc,0,0x10,0,64,0,0,1,1,2,1,a:1\n"
                                   "Realloc,0,0x20,0,128,0,0,1,2,3,1,a:1\n"
                                   "Alloc,0,0,0,0,0,0,1,3,4,1,a:1\n"
                                   "Free,0,0x10,0,0,0,0,0,4,");
  EXPECT_EQ(recording.processes.front().allocations.size(), 1u);
  std::vector<std::string> what;
  for (const LeftOut& left_out : recording.left_out) what.push_back(left_out.what);
  EXPECT_THAT(what,
              UnorderedElementsAre("reallocations, which do not tell what they gave back",
                                   "allocations and releases of no bytes",
                                   "last lines that are cut off"));
}

/// Its end alone is missing.
TEST_F(RmmLog, AWholeLastLineIsTaken) {
  EXPECT_EQ(events(kHead + "1,12:00:02.000000,allocate,0x10,256,0").size(), 1u);
}

TEST_F(RmmLog, WhatCannotBeNamesItsLine) {
  const std::string good = "1,12:00:00.000000,allocate,0x10,256,0\n";
  const struct {
    std::string text, says;
  } cases[] = {
      {kHead, "without a single event"},
      {"Thread,Time,Action,Pointer,Size\n" + good, "line 1: it is no head of a log of RMM"},
      {kHead + good + "1,12:00:00.000000,allocate,0x20\n",
       "line 3: it has 4 fields, and its head 6"},
      {kHead + "1,12:00:00.000000,allocate,0x20,1,0,7\n", "line 2: it has 7 fields"},
      {kHead + "1,12:00:00.000000,allocate,0x20,-1,0\n", "line 2: '-1' is no size that can be"},
      {kHead + "1,12:00:00.000000,allocate,0x20,99999999999999999999,0\n",
       "is no size that can be"},
      {kHead + "1,12:00:00.000000,allocate,0x20,1125899906842625,0\n", "is no size that can be"},
      {kHead + "1,12:00:00.000000,allocate,-5,1,0\n", "line 2: '-5' is no pointer"},
      {kHead + "1,12:00:00.000000,allocate,0x20,1,stream\n", "line 2: 'stream' is no stream"},
      {kHead + "1,12:00:00.000000,borrow,0x20,1,0\n", "line 2: 'borrow' is no action of RMM"},
      {kHead + "1,24:00:00.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kHead + "1,1:00:00.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kHead + "1,12-00:00.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kHead + "1,12:00-00.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kHead + "1,12:00:0x.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kHead + "1,12:00:00.0000000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kHead + good + "1,12:00:00.000000,free,0x10,512,0\n",
       "line 3: 512 bytes are freed at 0x10, where 256 were allocated"},
      {kHead + "1,12:00:00.000000,\"allocate,0x20,1,0\n", "line 2: a quote is not closed"},
      {kHead + std::string(1 << 17, '1') + "\n", "line 2 (byte 39) is longer than 65536 bytes"},
      {kHead2019 + "Alloc,5000,0x10,0,64,0,0,1,1,2,1,a:1\n", "line 2: '5000' is no GPU"},
      {kHead2019 + "Alloc,0,0x10,0,64,0,0,1,1,-2,1,a:1\n", "line 2: '-2' is no time"},
      {kHead2019 + "Alloc,0,0x10,0,64,0,0,1,1,nan,1,a:1\n", "line 2: 'nan' is no time"},
  };
  for (const auto& [text, says] : cases) EXPECT_THAT(refusal(text), HasSubstr(says));
}

}  // namespace
}  // namespace launchgap::recording
