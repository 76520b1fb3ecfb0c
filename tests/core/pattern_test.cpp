#include "harness/core/pattern.h"

#include <gmock/gmock.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

using namespace testing;

constexpr const char* kHead = "action,stream,gap_ns,call_ns,device_ns,bytes,number,blocks\n";

std::vector<PatternOperation> read(const std::string& rows) {
  return parse_pattern(kHead + rows, "p.csv");
}

void expect_refused(const std::string& rows, const std::string& why) {
  EXPECT_THAT([&] { read(rows); }, ThrowsMessage<Error>(HasSubstr(why))) << rows;
}

TEST(Pattern, IsWrittenAsItIsRead) {
  Pattern pattern;
  for (const PatternActionInfo& info : pattern_actions()) {
    PatternOperation one;
    one.action = info.action;
    one.stream = 3;
    one.gap_ns = 12;
    one.call_ns = 34;
    one.device_ns = 56;
    one.bytes = 78;
    const bool is_block = is_allocation(info.action) || info.action == PatternAction::release;
    one.number = info.action == PatternAction::allocate_pooled ? 8
                 : is_block || info.action == PatternAction::record_event ||
                         info.action == PatternAction::wait_event
                     ? 9
                     : 0;
    one.blocks = info.action == PatternAction::copy_to_host;
    pattern.operations.push_back(one);
  }
  EXPECT_EQ(parse_pattern(pattern_text(pattern), "p.csv"), pattern.operations);
}

TEST(Pattern, EmptyCellsAreZero) {
  PatternOperation kernel;
  kernel.device_ns = 5;
  EXPECT_THAT(read("kernel,,,,5,,,\n"), ElementsAre(kernel));
}

TEST(Pattern, RefusesWhatCannotBe) {
  expect_refused("", "it has no kernel, copy or fill");
  expect_refused("wait,,,,,,,\n", "it has no kernel, copy or fill");
  expect_refused("kernel,,-5,,1,,,\n", "operation 1: the gap before it lasts -5 ns");
  expect_refused("kernel,,,,1,,,\nkernel,,,,-1,,,\n", "operation 2: the work lasts -1 ns");
  expect_refused("kernel,,,,3600000000000,,,\n", "the work lasts 3600 s; a pattern may last 60 s");
  expect_refused("kernel,,40000000000,,1,,,\nkernel,,40000000000,,1,,,\n",
                 "its gaps and its work last 80 s together");
  expect_refused("kernel,128,,,1,,,\n", "its stream is number 128, and there may be 128");
  expect_refused("kernel,99999999999,,,1,,,\n", "column stream: '99999999999' is no number");
  expect_refused("kernal,,,,1,,,\n", "there is no action 'kernal'");
  expect_refused("wait_event,,,,,,1,\nkernel,,,,1,,,\nrecord_event,,,,,,1,\n",
                 "operation 1: it waits for event 1, which is not recorded before");
  expect_refused("kernel,,,,1,,,\nrelease,,,,,8,4,\n", "block 4 is not allocated");
  expect_refused("allocate,,,,,8,4,\nallocate,,,,,8,4,\n", "block 4 is allocated already");
  expect_refused("kernel,,,,1,,7,\nkernel,,,,1,,,\nkernel,,,,1,,7,\n",
                 "operation 3: graph 7 was launched before");
  expect_refused("kernel,,,,1,,,\nahead,,,,1,,,\n", "what is ahead of the step comes first");
  expect_refused("kernel,,,,1,,,1\n", "only the call of a copy can block");
  expect_refused("copy_to_host,,,,1,8,3,1\n", "a copy of a graph does not block");
  for (const char* const action : {"copy", "copy_to_device", "copy_to_host", "fill", "allocate"})
    expect_refused(std::string(action) + ",,,,1,,,\n", "operation 1: it is of 0 bytes");
  expect_refused("record_event,,,,,,4294967295,\nkernel,,,,1,,,\n", "its number is 4294967295");
  expect_refused("kernel,,,,1,,,\nwait,,,,,,9,\n", "it waits for event 9, which is not recorded");
  expect_refused("copy,,,,1,9223372036854775807,,\n", "nothing has so much");
  EXPECT_THAT([] { parse_pattern("action,stream\nkernel,1\n", "p.csv"); },
              ThrowsMessage<Error>(HasSubstr("gap_ns")));
  std::string many = kHead;
  for (std::size_t i = 0; i <= kMostPatternOperations; ++i) many += "kernel,,,,1,,,\n";
  EXPECT_THAT([&] { parse_pattern(many, "p.csv"); },
              ThrowsMessage<Error>(HasSubstr("and may have 200000")));
}

TEST(Pattern, SumsThatHaveNoRoomAreRefused) {
  std::string rows;
  for (int i = 0; i < 200; ++i) rows += "kernel,,60000000000,,60000000000,,,\n";
  expect_refused(rows, "a pattern may last");
}

TEST(Pattern, ComesTo) {
  Pattern pattern;
  pattern.operations = read(
      "ahead,1,,,700,,,\n"
      "allocate,,5,,,100,1,\n"
      "kernel,,10,,50,,,\n"
      "kernel,2,10,,50,,1,\n"
      "kernel,2,,,50,,1,\n"
      "kernel,2,,,50,,2,\n"
      "copy_to_device,,,,20,4000,,1\n"
      "fill,,,,20,8000,,\n"
      "allocate,,,,,300,2,\n"
      "release,,,,,,1,\n"
      "allocate,,,,,50,3,\n"
      "wait,,,,,,,\n");
  const PatternTotals totals = totals_of(pattern);
  EXPECT_EQ(totals.kernels, 5);
  EXPECT_EQ(totals.launches, 3);
  EXPECT_EQ(totals.graphs, 2);
  EXPECT_EQ(totals.copies, 1);
  EXPECT_EQ(totals.fills, 1);
  EXPECT_EQ(totals.waits, 1);
  EXPECT_EQ(totals.streams, 3);
  EXPECT_EQ(totals.gaps_ns, 25);
  EXPECT_EQ(totals.kernel_ns, 900);
  EXPECT_EQ(totals.most_live_bytes, 400);
  EXPECT_EQ(totals.host_copy_bytes, 4000);
  EXPECT_EQ(totals.device_bytes(), 400 + 2 * 8000);
}

TEST(Pattern, HasANameThatACaseCanHave) {
  EXPECT_EQ(pattern_name("a b/c:d.12"), "a_b_c_d.12");
  EXPECT_EQ(pattern_name(""), "pattern");
  EXPECT_EQ(pattern_name(std::string(500, 'x')).size(), 60);
  EXPECT_THAT(pattern_name(std::string(500, 'x'), ".12"), EndsWith("xxx.12"));
}

}  // namespace
}  // namespace launchgap
