#include "harness/summary/replay_answers.h"

#include <gmock/gmock.h>

namespace launchgap {
namespace {

using namespace testing;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

AllocatorRecord needing(const char* name, std::uint64_t bytes, double over_peak = 1.2) {
  AllocatorRecord made;
  made.name = name;
  made.completed = true;
  made.c_min_bytes = bytes;
  made.c_min_over_peak = over_peak;
  return made;
}

std::vector<std::string> answers_of(std::vector<AllocatorRecord> allocators) {
  ReplayRecord record;
  record.allocators = std::move(allocators);
  return replay_answers(record);
}

TEST(ReplayAnswers, WhoNeedsLeastIsSaidOfTwoOrMore) {
  EXPECT_THAT(answers_of({needing("caching", kMiB)}), IsEmpty());
  EXPECT_THAT(
      answers_of({needing("caching", 3 * kMiB), needing("bfc", 2 * kMiB)}),
      ElementsAre("bfc needs least: 2 MiB, 20.0 % more than the peak in use. caching needs 50 % "
                  "more."));
  EXPECT_THAT(answers_of({needing("caching", 3 * kMiB), needing("bfc", 2 * kMiB, 1.0004)}),
              ElementsAre(HasSubstr("2 MiB, no more than the peak in use.")));
  EXPECT_THAT(answers_of({needing("caching", 2 * kMiB), needing("bfc", 2 * kMiB)}),
              ElementsAre("All need the same: 2 MiB."));
}

TEST(ReplayAnswers, GrowthMakesADifferenceFromAThousandthOn) {
  const auto of_growth = [](std::uint64_t grown) {
    return answers_of({needing("bfc", 10'000), needing("bfc_growth", grown)}).back();
  };
  EXPECT_THAT(of_growth(9'991), HasSubstr("makes no difference"));
  EXPECT_THAT(of_growth(10'009), HasSubstr("makes no difference"));
  EXPECT_EQ(of_growth(9'000), "Memory growth helps here: bfc_growth needs 10 % less than bfc.");
  EXPECT_THAT(of_growth(9'989), HasSubstr("growth helps here"));
  EXPECT_THAT(of_growth(10'011), HasSubstr("does not help here"));
}

TEST(ReplayAnswers, RecoveriesAreSaidFromTheSecondOn) {
  AllocatorRecord one;
  one.name = "caching";
  one.allocate.n = 10;
  one.recoveries = 1;
  EXPECT_THAT(answers_of({one}), IsEmpty());
  one.recoveries = 2;
  EXPECT_THAT(answers_of({one}),
              ElementsAre(HasSubstr("2 of 11 allocations of caching failed at first")));
  one.completed = true;
  EXPECT_THAT(answers_of({one}), ElementsAre(HasSubstr("2 of 10 allocations")));
}

TEST(ReplayAnswers, WhatSoFewEpochsDoNotShowIsSaidAfterTheFirstFive) {
  AllocatorRecord one;
  one.name = "bfc";
  CreepRecord& creep = one.creep.emplace();
  creep.kind = "none";
  creep.rarest_step_epochs = 4;
  creep.epochs.assign(5, EpochRecord{kMiB, kMiB, kMiB});
  EXPECT_THAT(answers_of({one}), ElementsAre("Memory does not creep with bfc."));
  creep.epochs.push_back({2 * kMiB, kMiB, kMiB});
  EXPECT_THAT(answers_of({one}),
              ElementsAre("6 epochs show only what grows at least once in 4 epochs: a rarer leak "
                          "looks like none, or like memory that was taken at first. Play more with "
                          "--epochs.",
                          "Memory does not creep with bfc."));
  creep.epochs.push_back({3 * kMiB, kMiB, kMiB});
  EXPECT_THAT(answers_of({one}).front(),
              HasSubstr("bfc: at the end the program holds 1 MiB more than after the first 5 "
                        "epochs"));
  creep.rarest_step_epochs.reset();
  EXPECT_THAT(answers_of({one}), ElementsAre("Memory does not creep with bfc."));
  creep.rarest_step_epochs = 4;
  creep.kind = "leak";
  creep.bytes_per_epoch = 1 << 20;
  EXPECT_THAT(
      answers_of({one}),
      ElementsAre("bfc: the program holds more and more memory: a leak, 1 MiB in each epoch."));
}

TEST(ReplayAnswers, MemoryHasTheUnitBelowWhichItIs1024) {
  EXPECT_EQ(memory_text(1023), "1023 B");
  EXPECT_EQ(memory_text(1024), "1 KiB");
  EXPECT_EQ(memory_text(2'833'678'336), "2.639 GiB");
  EXPECT_EQ(memory_text(std::uint64_t{1} << 60), "1024 PiB");
}

}  // namespace
}  // namespace launchgap
