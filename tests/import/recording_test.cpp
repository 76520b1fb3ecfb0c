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

TEST(Process, CountsWhatItsAllocationsComeTo) {
  using Action = AllocationAction;
  Process process;
  const auto add =
      [&](std::int64_t at_ns, std::uint64_t address, std::uint64_t bytes, Action action) {
        process.allocations.push_back({at_ns, address, bytes, 0, 0, 0, action});
      };
  add(30, 0xA, 100, Action::release);  // they are counted in the order of their times
  add(10, 0xA, 100, Action::allocate);
  add(20, 0xB, 40, Action::allocate);
  add(40, 0xC, 7, Action::release);    // of what was there before
  add(50, 0xB, 60, Action::allocate);  // its release was not recorded
  add(60, 0, 1000, Action::fail);
  process.allocations.push_back({70, 0xD, 500, 1, 0, 0, Action::allocate});  // of another GPU
  AllocationCounts expected;
  expected.allocations = 3;
  expected.releases = 1;
  expected.failures = 1;
  expected.unseen = 1;
  expected.missing = 1;
  expected.most_live_bytes = 140;
  expected.live_at_end_bytes = 60;
  EXPECT_EQ(count_allocations(process, 0), expected);
  EXPECT_EQ(count_allocations(process, 1).live_at_end_bytes, 500u);
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
