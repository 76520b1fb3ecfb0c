#include "harness/investigate/moved_part.h"

#include <gmock/gmock.h>

namespace launchgap::investigate {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t at(Part part) {
  return static_cast<std::size_t>(part);
}

/// A launch of 10 us: 2 in the call, 5 in the queue, 2 in the kernel, 1 until the thread is awake.
Observation usual() {
  Observation one;
  one.parts_ns[at(Part::call)] = 2000;
  one.parts_ns[at(Part::queue)] = 5000;
  one.parts_ns[at(Part::kernel)] = 2000;
  one.parts_ns[at(Part::wait)] = 1000;
  one.range_ns = 10'000;
  one.value = 10'000;
  return one;
}

Observation longer(Part part, std::int64_t by_ns) {
  Observation one = usual();
  one.parts_ns[at(part)] += by_ns;
  one.range_ns += by_ns;
  one.value += static_cast<double>(by_ns);
  return one;
}

std::vector<Observation> mostly_usual(std::size_t count, const std::vector<Observation>& others) {
  std::vector<Observation> all(count - others.size(), usual());
  all.insert(
      all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), others.begin(), others.end());
  return all;
}

TEST(MovedPart, IsWhateverMadeTheSlowestSlow) {
  for (const Part part :
       {Part::overhead, Part::call, Part::kernel, Part::queue, Part::wait, Part::program}) {
    const auto found =
        compare_slowest(mostly_usual(100, std::vector<Observation>(5, longer(part, 8000))));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->moved, part) << info_of(part).name;
    EXPECT_EQ(found->slowest, 5u);
    EXPECT_EQ(found->others, 95u);
    EXPECT_EQ(found->with_this, 5u);
    EXPECT_DOUBLE_EQ(found->value_slowest, 18'000);
    EXPECT_DOUBLE_EQ(found->value_others, 10'000);
    EXPECT_NEAR(found->difference_ns(part), 8000, 1e-6);
    EXPECT_NEAR(found->difference_ns(), 8000, 1e-6);
  }
}

TEST(MovedPart, TheDifferencesOfThePartsAddUpToThatOfTheWhole) {
  std::vector<Observation> observations;
  for (int i = 0; i < 200; ++i)
    observations.push_back(longer(static_cast<Part>(i % 6), 100L * (i % 37)));
  const auto found = compare_slowest(observations);
  ASSERT_TRUE(found);
  double sum = 0;
  for (std::size_t i = 0; i < kParts; ++i) sum += found->difference_ns(static_cast<Part>(i));
  EXPECT_NEAR(sum, found->difference_ns(), 1e-6);
}

struct None {
  const char* name;
  std::vector<Observation> slowest;
  const char* why;
};

TEST(MovedPart, IsNoneWhereNothingExplainsTheDifference) {
  Observation elsewhere = usual();  // the session saw it, the report did not
  elsewhere.value += 8000;
  Observation three = longer(Part::call, 3000);
  three.parts_ns[at(Part::kernel)] += 3000;
  three.parts_ns[at(Part::wait)] += 3000;
  three.range_ns += 6000;
  three.value += 6000;
  const None cases[] = {
      {"no event", std::vector<Observation>(5, longer(Part::call, 300)), "take 3 % more"},
      {"not longer in the report", std::vector<Observation>(5, elsewhere), "not the longer ones"},
      {"three parts alike", std::vector<Observation>(5, three), "no part makes half"},
      {"one of five",
       {longer(Part::queue, 100'000),
        longer(Part::call, 8000),
        longer(Part::call, 8000),
        longer(Part::wait, 8000),
        longer(Part::wait, 8000)},
       "in 1 of the 5 samples only"},
  };
  for (const None& row : cases) {
    SCOPED_TRACE(row.name);
    const auto found = compare_slowest(mostly_usual(100, row.slowest));
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->moved);
    EXPECT_THAT(found->why_none, HasSubstr(row.why));
  }
}

TEST(MovedPart, NeedsTenSamples) {
  EXPECT_FALSE(compare_slowest({}));
  EXPECT_FALSE(compare_slowest(mostly_usual(9, {longer(Part::call, 8000)})));
  const auto ten = compare_slowest(mostly_usual(10, {longer(Part::call, 8000)}));
  ASSERT_TRUE(ten);
  EXPECT_EQ(ten->slowest, 1u);
  EXPECT_EQ(ten->moved, Part::call);
}

}  // namespace
}  // namespace launchgap::investigate
