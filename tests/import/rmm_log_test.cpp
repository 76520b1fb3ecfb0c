#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/import/readers.h"
#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;

constexpr std::int64_t kSecond = 1'000'000'000, kOneDay = 86'400 * kSecond;
const std::string kLogHead = "Thread,Time,Action,Pointer,Size,Stream\n";
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
  const Recording recording = read(kLogHead +
                                   "101,12:00:00.000001,allocate,0x7f0100,256,0x7f8a38001020\r\n"
                                   "102,12:00:00.000002,free,0x7f0100,256,0x7f8a38001020\r\n"
                                   "102,12:00:01.000000,allocate failure,(nil),132870728,0\r\n");
  const Process& process = recording.processes.front();
  EXPECT_THAT(process.threads, ElementsAre("101", "102"));
  const std::int64_t noon = kOneDay + kOneDay / 2;
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
    return read(kLogHead + "1,12:00:00.000002,allocate,0x10,256,0\n1,12:00:00." + second +
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
    return events(kLogHead + "1," + time + ",allocate,0x10,256," + text + "\n").front().stream;
  };
  EXPECT_EQ(stream("12:00:00.000000", "0x7f8a38001020"), 0x7f8a38001020u);
  EXPECT_EQ(stream("12:00:00.000000", "10"), 0x10u);
  EXPECT_EQ(stream("12:00:00.000000", "(nil)"), 0u);
  EXPECT_EQ(stream("12:00:00:000000", "140231621742624"), 140231621742624u);
  EXPECT_EQ(stream("12:00:00:000000", "0x10"), 0x10u);
  EXPECT_EQ(stream("12:00:00.000000", "0xFFFFFFFFFFFFFFFF"), ~std::uint64_t{0});
}

TEST_F(RmmLog, TimesRiseOnAfterMidnight) {
  const auto all = events(kLogHead +
                          "1,23:59:59.500000,allocate,0x10,256,0\n"
                          "1,00:00:00.500000,free,0x10,256,0\n"
                          "1,23:00:00.000000,allocate,0x10,256,0\n"
                          "1,01:00:00.000000,free,0x10,256,0\n");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].at_ns - all[0].at_ns, kSecond);
  EXPECT_EQ(all[3].at_ns - all[2].at_ns, 7200 * kSecond);
}

TEST_F(RmmLog, AClockThatGoesBackIsCounted) {
  const Recording recording = read(kLogHead +
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

TEST_F(RmmLog, TimesOfADayAreExactToTheirDigits) {
  const auto at = [&](const std::string& time) {
    return events(kLogHead + "1," + time + ",allocate,0x10,256,0\n").front().at_ns - kOneDay;
  };
  EXPECT_EQ(at("00:00:00"), 0);
  EXPECT_EQ(at("01:02:03"), (3600 + 120 + 3) * kSecond);
  EXPECT_EQ(at("23:59:60"), kOneDay);
  EXPECT_EQ(at("00:00:00.5"), kSecond / 2);
  EXPECT_EQ(at("00:00:00:25"), kSecond / 4);
  EXPECT_EQ(at("00:00:00.123456789"), 123'456'789);
  for (const char* const bad : {"",
                                "1",
                                "12:00",
                                "12:00:0",
                                "23:59:61",
                                "23:60:00",
                                "24:00:00",
                                "12:00:00.",
                                "12:00:00x5",
                                "12:00:00.0x1",
                                "12:00:00.1x",
                                "12:00:00.1234567891",
                                "12.00:00",
                                "12:00.00"}) {
    EXPECT_EQ(refusal(kLogHead + "1," + bad + ",allocate,0x10,256,0\n"),
              fmt::format("line 2: '{}' is no time of a day", bad));
  }
}

TEST_F(RmmLog, MidnightIsWhereTimesGoBackByMoreThanHalfADay) {
  const auto second = [&](const char* first, const char* then) {
    const auto all =
        events(kLogHead + "1," + first + ",allocate,0x10,256,0\n1," + then + ",free,0x10,256,0\n");
    return all[1].at_ns - all[0].at_ns;
  };
  EXPECT_EQ(second("12:00:00.000000", "00:00:00.000000"), 0);
  EXPECT_EQ(second("12:00:00.000001", "00:00:00.000000"), kOneDay / 2 - 1000);
}

TEST_F(RmmLog, EachLineThatGoesBackIsCounted) {
  const Recording recording = read(kLogHead +
                                   "1,12:00:02.000000,allocate,0x10,256,0\n\n"
                                   "1,12:00:01.000000,allocate,0x20,256,0\n"
                                   "1,12:00:01.500000,allocate,0x30,256,0\n");
  EXPECT_THAT(recording.remarks,
              ElementsAre(HasSubstr("the times of 2 lines go back, first on line 4")));
}

TEST_F(RmmLog, ThreadsMayBeMissing) {
  const Recording recording =
      read("Time,Action,Pointer,Size,Stream\n12:00:00,allocate,0X10,256,0\n");
  EXPECT_THAT(recording.processes.front().threads, ElementsAre("not recorded"));
  EXPECT_EQ(recording.processes.front().allocations.at(0).address, 0x10u);
}

TEST_F(RmmLog, SaysWhichItIs) {
  const std::string line = "1,12:00:00,allocate,0x10,256,0\n";
  EXPECT_EQ(read(kLogHead + line).form, "CSV, of its logging adaptor");
  EXPECT_EQ(read("\xEF\xBB\xBF" + kLogHead + line).clock,
            "time of day, of which day is not recorded");
  const Recording old = read(kHead2019 + "Alloc,0,0x10,0,64,0,0,1,1,2,1,a:1\n");
  EXPECT_EQ(old.form, "CSV, of 2019");
  EXPECT_EQ(old.clock, "its start");
}

TEST_F(RmmLog, SecondsSinceItsStartAreFrom0To1e9) {
  const auto log = [](const std::string& end) {
    return kHead2019 + "Alloc,1023,0x10,0,64,0,0,1,1," + end + ",1,a:1\n";
  };
  EXPECT_EQ(events(log("0"))[0].at_ns, 1);
  EXPECT_EQ(events(log("1e9"))[0].at_ns, kSecond * kSecond + 1);
  EXPECT_EQ(events(log("0"))[0].gpu, 1023u);
  for (const char* const bad : {"-1", "1000000001", "2x", "x", "", "nan", "1e999"}) {
    EXPECT_EQ(refusal(log(bad)), fmt::format("line 2: '{}' is no time", bad));
  }
  EXPECT_EQ(refusal(kHead2019 + "Alloc,1024,0x10,0,64,0,0,1,1,2,1,a:1\n"),
            "line 2: '1024' is no GPU");
}

TEST_F(RmmLog, WhatIsFreedHasTheSizeThatIsKnown) {
  const auto log = [](const std::string& lines) {
    std::string text = kLogHead;
    for (std::size_t at = 0; at < lines.size(); ++at) text += lines[at] == ';' ? '\n' : lines[at];
    return text;
  };
  const std::string at = "1,12:00:00,";
  // Of what was there before, and twice.
  EXPECT_EQ(events(log(at + "free,0x10,7,0;" + at + "allocate,0x10,8,0;" + at + "free,0x10,8,0;" +
                       at + "free,0x10,9,0;"))
                .size(),
            4u);
  // Not told.
  EXPECT_EQ(events(log(at + "allocate,0x10,8,0;" + at + "free,0x10,0,0;")).size(), 2u);
  // Nothing is given for no bytes.
  EXPECT_EQ(
      events(log(at + "allocate,0x10,0,0;" + at + "allocate,0x10,1,0;" + at + "free,(nil),1,0;"))
          .size(),
      1u);
  // Where nothing was given, no pointer is.
  EXPECT_EQ(events(log(at + "allocate failure,x,0,0;"))[0].address, 0u);
  EXPECT_EQ(events(log(at + "allocate,0x10,1125899906842624,0;"))[0].bytes, std::uint64_t{1} << 50);
  // One GPU's addresses are not another's.
  EXPECT_EQ(events(kHead2019 + "Alloc,0,0x10,0,64,0,0,1,1,2,1,a:1\n"
                               "Free,1,0x10,0,32,0,0,1,1,3,1,a:1\n")
                .size(),
            2u);
}

TEST_F(RmmLog, HeadsHaveEachColumnThatIsAskedFor) {
  const std::string of_adaptor =
      "line 1: it is no head of a log of RMM, which has Thread,Time,Action,Pointer,Size,Stream";
  EXPECT_EQ(refusal("Thread,Time,Pointer,Size,Stream\n"), of_adaptor);
  EXPECT_EQ(refusal("Thread,Time,Action,Size,Stream\n"), of_adaptor);
  EXPECT_EQ(refusal("Thread,Time,Action,Pointer,Stream\n"), of_adaptor);
  EXPECT_EQ(refusal("Thread,Time,Action,Pointer,Size\n"), of_adaptor);
  EXPECT_EQ(refusal("Event Type,Device ID,Address,Stream,Size (bytes),Start\n"),
            "line 1: it is no head of a log of RMM, which has Event Type,Device "
            "ID,Address,Stream,Size (bytes),…");
  EXPECT_EQ(refusal("Time\n"), "line 1: it is no head of a log of RMM");
  EXPECT_EQ(refusal("Thread,Time,\"\n"), "line 1: a quote is not closed");
}

/// So much of a field is shown that 40 bytes of it are.
TEST_F(RmmLog, LongFieldsAreCutInMessages) {
  const std::string longest(40, 'x');
  const std::string good[] = {"1", "12:00:00", "allocate", "0x10", "1", "0"};
  const std::pair<std::size_t, const char*> cases[] = {{1, "is no time of a day"},
                                                       {2, "is no action of RMM"},
                                                       {3, "is no pointer"},
                                                       {4, "is no size that can be"},
                                                       {5, "is no stream"}};
  for (const auto& [place, says] : cases) {
    for (const bool longer : {false, true}) {
      std::string line;
      for (std::size_t i = 0; i < std::size(good); ++i)
        line += (i > 0 ? "," : "") + (i == place ? longest + (longer ? "x" : "") : good[i]);
      const std::string refused = refusal(kLogHead + line + "\n");
      EXPECT_THAT(refused, HasSubstr(says));
      EXPECT_THAT(refused, HasSubstr("'" + longest + (longer ? "…'" : "'")));
    }
  }
  for (const bool longer : {false, true}) {
    const std::string cell = longest + (longer ? "x" : "");
    for (const std::string& refused :
         {refusal(kHead2019 + "Alloc," + cell + ",0x10,0,64,0,0,1,1,2,1,a:1\n"),
          refusal(kHead2019 + "Alloc,0,0x10,0,64,0,0,1,1," + cell + ",1,a:1\n")})
      EXPECT_THAT(refused, HasSubstr("'" + longest + (longer ? "…'" : "'")));
  }
}

TEST_F(RmmLog, LinesAreAsLongAs64KiB) {
  const auto of = [&](std::size_t size) {
    const std::string begin = "Alloc,0,0x10,0,64,0,0,1,1,2,1,";
    return kHead2019 + begin + std::string(size - begin.size(), 'x') + "\n";
  };
  EXPECT_EQ(events(of(1 << 16)).size(), 1u);
  EXPECT_THAT(refusal(of((1 << 16) + 1)), HasSubstr("is longer than 65536 bytes"));
}

/// Of the last field nothing is there.
TEST_F(RmmLog, ALastLineThatLacksItsLastFieldIsCutOff) {
  const std::string good = "1,12:00:02,allocate,0x10,256,0\n";
  for (const char* const torn : {"1,12:00:02,allocate,0x20,256,",
                                 "1,12:00:02,allocate,0x20,256",
                                 "1,\"12:00:02,allocate,0x20,256,0"}) {
    const Recording recording = read(kLogHead + good + torn);
    EXPECT_EQ(recording.processes.front().allocations.size(), 1u);
    ASSERT_EQ(recording.left_out.size(), 1u);
    EXPECT_EQ(recording.left_out[0].what, "last lines that are cut off");
  }
}

/// Its end alone is missing.
TEST_F(RmmLog, AWholeLastLineIsTaken) {
  EXPECT_EQ(events(kLogHead + "1,12:00:02.000000,allocate,0x10,256,0").size(), 1u);
}

TEST_F(RmmLog, WhatCannotBeNamesItsLine) {
  const std::string good = "1,12:00:00.000000,allocate,0x10,256,0\n";
  const struct {
    std::string text, says;
  } cases[] = {
      {kLogHead, "without a single event"},
      {"Thread,Time,Action,Pointer,Size\n" + good, "line 1: it is no head of a log of RMM"},
      {kLogHead + good + "1,12:00:00.000000,allocate,0x20\n",
       "line 3: it has 4 fields, and its head 6"},
      {kLogHead + "1,12:00:00.000000,allocate,0x20,1,0,7\n", "line 2: it has 7 fields"},
      {kLogHead + "1,12:00:00.000000,allocate,0x20,-1,0\n", "line 2: '-1' is no size that can be"},
      {kLogHead + "1,12:00:00.000000,allocate,0x20,99999999999999999999,0\n",
       "is no size that can be"},
      {kLogHead + "1,12:00:00.000000,allocate,0x20,1125899906842625,0\n", "is no size that can be"},
      {kLogHead + "1,12:00:00.000000,allocate,-5,1,0\n", "line 2: '-5' is no pointer"},
      {kLogHead + "1,12:00:00.000000,allocate,0x20,1,stream\n", "line 2: 'stream' is no stream"},
      {kLogHead + "1,12:00:00.000000,borrow,0x20,1,0\n", "line 2: 'borrow' is no action of RMM"},
      {kLogHead + "1,24:00:00.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kLogHead + "1,1:00:00.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kLogHead + "1,12-00:00.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kLogHead + "1,12:00-00.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kLogHead + "1,12:00:0x.000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kLogHead + "1,12:00:00.0000000000,allocate,0x20,1,0\n", "is no time of a day"},
      {kLogHead + good + "1,12:00:00.000000,free,0x10,512,0\n",
       "line 3: 512 bytes are freed at 0x10, where 256 were allocated"},
      {kLogHead + "1,12:00:00.000000,\"allocate,0x20,1,0\n", "line 2: a quote is not closed"},
      {kLogHead + std::string(1 << 17, '1') + "\n", "line 2 (byte 39) is longer than 65536 bytes"},
      {kHead2019 + "Alloc,5000,0x10,0,64,0,0,1,1,2,1,a:1\n", "line 2: '5000' is no GPU"},
      {kHead2019 + "Alloc,0,0x10,0,64,0,0,1,1,-2,1,a:1\n", "line 2: '-2' is no time"},
      {kHead2019 + "Alloc,0,0x10,0,64,0,0,1,1,nan,1,a:1\n", "line 2: 'nan' is no time"},
  };
  for (const auto& [text, says] : cases) EXPECT_THAT(refusal(text), HasSubstr(says));
}

}  // namespace
}  // namespace launchgap::recording
