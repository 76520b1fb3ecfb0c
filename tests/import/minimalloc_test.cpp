#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/import/readers.h"
#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using Action = AllocationAction;

const std::string kColumns = "id,lower,upper,size\n";

struct Minimalloc : TextFile {
  std::vector<Allocation> events(const std::string& text) const {
    return read_minimalloc(file(text)).processes.front().allocations;
  }
  std::string refusal(const std::string& lines) const {
    return error_of([&] { events(kColumns + lines); });
  }
};

TEST_F(Minimalloc, WhatEndsWhenSomethingBeginsMakesRoomForIt) {
  EXPECT_THAT(events(kColumns + "b1,3,9,4\nb2,0,3,8\n"),
              ElementsAre(Allocation{1, 2, 8, 0, 0, 0, Action::allocate},
                          Allocation{4, 2, 8, 0, 0, 0, Action::release},
                          Allocation{4, 1, 4, 0, 0, 0, Action::allocate},
                          Allocation{10, 1, 4, 0, 0, 0, Action::release}));
}

TEST_F(Minimalloc, WhatHappensAtOnceIsInTheOrderOfTheFile) {
  std::vector<std::pair<std::uint64_t, bool>> order;
  for (const Allocation& one : events(kColumns + "b1,5,9,1\n\nb2,0,5,2\nb3,5,9,3\nb4,0,5,4\n"))
    order.emplace_back(one.address, one.action == Action::allocate);
  EXPECT_THAT(order,
              ElementsAre(Pair(2, true),
                          Pair(4, true),
                          Pair(2, false),
                          Pair(4, false),
                          Pair(1, true),
                          Pair(3, true),
                          Pair(1, false),
                          Pair(3, false)));
  EXPECT_THAT(refusal("b1,5,9,1\n\nb2,0,5,x\n"), HasSubstr("line 4: "));
}

TEST_F(Minimalloc, SaysWhatItIs) {
  const Recording recording = read_minimalloc(file(kColumns + "b1,5,9,1\n"));
  EXPECT_EQ(recording.recorder, "minimalloc");
  EXPECT_EQ(recording.form, "CSV");
  EXPECT_EQ(recording.clock, "none: times are steps");
  EXPECT_THAT(recording.processes.at(0).threads, ElementsAre("not recorded"));
}

TEST_F(Minimalloc, LinesAreAsLongAs4096Bytes) {
  const auto with_name = [](std::size_t size) { return std::string(size - 6, 'b') + ",0,3,4\n"; };
  EXPECT_THAT(events(kColumns + with_name(4096)), SizeIs(2));
  EXPECT_EQ(refusal(with_name(4097)), "line 2 (byte 20) is longer than 4096 bytes");
}

TEST_F(Minimalloc, ColumnsStandInAnyOrderUnderAnyOfTheirNames) {
  const auto usual = events(kColumns + "b1,0,3,4\n");
  EXPECT_EQ(events("size,note,end,start,buffer\r\n4,x,3,0,b1\r\n\r\n"), usual);
  EXPECT_EQ(events("buffer_id,begin,end,size\nb1,0,3,4\n"), usual);
  EXPECT_TRUE(is_minimalloc(kColumns));
  for (const char* const head : {"id,lower,upper\n", "lower,upper,size\n", "id,upper,size\n"})
    EXPECT_FALSE(is_minimalloc(head)) << head;
  EXPECT_FALSE(is_minimalloc("id,lower,upper,size")) << "no whole line";
}

TEST_F(Minimalloc, NumbersReachToTheirLimitsAndNoFurther) {
  constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;
  const auto line = [](std::uint64_t lower, std::uint64_t upper, std::uint64_t size) {
    return fmt::format("b1,{},{},{}\n", lower, upper, size);
  };
  EXPECT_THAT(events(kColumns + line(kLatest - 1, kLatest, kMostAllocationBytes)), SizeIs(2));
  EXPECT_THAT(refusal(line(0, kLatest + 1, 1)), HasSubstr("line 2: it ends before it begins"));
  EXPECT_THAT(refusal(line(3, 3, 1)), HasSubstr("line 2: it ends before it begins"));
  EXPECT_THAT(refusal(line(0, 3, 0)), HasSubstr("line 2: it has a size that cannot be"));
  EXPECT_THAT(refusal(line(0, 3, kMostAllocationBytes + 1)), HasSubstr("a size that cannot be"));
  for (const char* const bad :
       {"b1,0,3\n", "b1,0,x,4\n", "b1,0,3,4 \n", "b1,-1,3,4\n", "b1,,3,4\n"})
    EXPECT_THAT(refusal(bad), HasSubstr("line 2: it has no lower, upper and size")) << bad;
  EXPECT_EQ(refusal(""), "it has no blocks");
  EXPECT_EQ(error_of([&] { events("id,lower,upper\nb1,0,3\n"); }),
            "line 1: it has not the columns id, lower, upper and size");
}

}  // namespace
}  // namespace launchgap::recording
