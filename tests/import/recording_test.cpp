#include "harness/import/recording.h"

#include <set>

#include <gmock/gmock.h>

#include "harness/core/errors.h"

namespace launchgap::recording {
namespace {

constexpr std::uint64_t k32 = std::uint64_t{1} << 32, k63 = std::uint64_t{1} << 63;

TEST(Process, KeepsCorrelationNumbersOf32Bits) {
  Process process;
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{863350}, k32 - 1})
    EXPECT_EQ(process.correlation(number), number);
}

TEST(Process, TellsLongCorrelationNumbersApart) {
  Process process;
  const std::uint64_t numbers[] = {7, k32, k32 + 7, k63, k63 + 7, ~std::uint64_t{0}};
  std::set<std::uint32_t> found;
  for (const std::uint64_t number : numbers) found.insert(process.correlation(number));
  EXPECT_EQ(found.size(), std::size(numbers));
  EXPECT_FALSE(found.contains(0)) << "which stands for none";
  for (const std::uint64_t number : numbers)
    EXPECT_TRUE(found.contains(process.correlation(number))) << "the same again: " << number;
}

TEST(Process, RefusesNumbersOfBothKindsThatMeet) {
  Process long_first;
  long_first.correlation(k63);
  EXPECT_THROW(long_first.correlation(k32 - 1), Error);
  Process short_first;
  short_first.correlation(k32 - 1);
  EXPECT_THROW(short_first.correlation(k63), Error);
}

TEST(Process, CountsStreamsAndThreadsAsTheyCome) {
  Process process;
  EXPECT_EQ(process.stream({0, 1, 7}), 0u);
  EXPECT_EQ(process.stream({0, 2, 7}), 1u) << "of another context";
  EXPECT_EQ(process.stream({1, 1, 7}), 2u) << "of another GPU";
  EXPECT_EQ(process.stream({0, 1, 7}), 0u);
  EXPECT_EQ(process.thread("b"), 0u);
  EXPECT_EQ(process.thread("a"), 1u);
  EXPECT_EQ(process.thread("b"), 0u);
}

TEST(Recording, AddsUpWhatItLeavesOut) {
  Recording recording;
  recording.leave_out("calls");
  recording.leave_out("events", 0);
  recording.leave_out("calls", 2);
  ASSERT_EQ(recording.left_out.size(), 1u);
  EXPECT_EQ(recording.left_out.front().what, "calls");
  EXPECT_EQ(recording.left_out.front().count, 3u);
}

}  // namespace
}  // namespace launchgap::recording
