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

TEST(ReplayAnswers, OfWhatNeedsNothingOrIsNotKnownNoShareIsSaid) {
  AllocatorRecord unknown = needing("direct", 1);
  unknown.c_min_bytes.reset();
  EXPECT_THAT(answers_of({unknown, needing("bfc", kMiB)}), IsEmpty());
  AllocatorRecord none = needing("pool", 0);
  none.c_min_over_peak.reset();
  EXPECT_THAT(answers_of({unknown, needing("caching", 4), none}),
              ElementsAre("pool needs least: 0 B. caching needs 300 % more."));
  EXPECT_THAT(answers_of({needing("caching", 4), needing("bfc", 2, 1.0005)}).at(0),
              HasSubstr(" % more than the peak in use."));
  EXPECT_THAT(answers_of({needing("bfc", 0), needing("bfc_growth", 5)}), SizeIs(1));
  EXPECT_THAT(answers_of({needing("bfc", 1), needing("bfc_growth", 2)}).back(),
              "Memory growth does not help here: bfc_growth needs 100 % more than bfc.");
  AllocatorRecord growth = needing("bfc_growth", 1);
  growth.c_min_bytes.reset();
  EXPECT_THAT(answers_of({needing("bfc", 1), growth}), IsEmpty());
}

AllocatorRecord failing(const char* name, const char* cured_by) {
  AllocatorRecord made;
  made.name = name;
  AllocationFailure& failure = made.failure.emplace();
  failure.event = 7;
  failure.bytes = 2 * kMiB;
  failure.cured_by = cured_by;
  failure.then.live_bytes = kMiB;
  return made;
}

TEST(ReplayAnswers, FailuresSayHowMemoryLayAndWhatCuredThem) {
  AllocatorRecord one = failing("cuda", "trim");
  const std::string asks = "cuda fails at event 7, which asks for 2 MiB, with ";
  const std::string cured = "; giving back what was only kept cured it.";
  EXPECT_THAT(answers_of({one}), ElementsAre(asks + "1 MiB live" + cured));
  MemoryMoment& then = one.failure->then;
  then.granted_bytes = kMiB;
  EXPECT_THAT(answers_of({one}), ElementsAre(asks + "1 MiB live" + cured));
  then.granted_bytes = kMiB + 1024;
  EXPECT_THAT(answers_of({one}), ElementsAre(asks + "1 MiB live that take 1.001 MiB" + cured));
  then.reserved_bytes = 8 * kMiB;
  EXPECT_THAT(answers_of({one}), ElementsAre(HasSubstr("live that take")));
  then.free_bytes = 4 * kMiB;
  EXPECT_THAT(answers_of({one}), ElementsAre(HasSubstr("live that take")));
  then.largest_free_bytes = 3 * kMiB;
  EXPECT_THAT(answers_of({one}),
              ElementsAre(asks + "4 MiB of 8 MiB free and 3 MiB the largest block" + cured));
  then.reserved_bytes.reset();
  EXPECT_THAT(answers_of({one}), ElementsAre(HasSubstr("live that take")));
  then = {};
  EXPECT_THAT(answers_of({one}), ElementsAre(asks + "0 B live" + cured));
}

TEST(ReplayAnswers, WhatLiesInTheWayIsSaidOfAllocatorsThatTellIt) {
  AllocatorRecord one = failing("cuda", "destroy");
  EXPECT_THAT(answers_of({one}), ElementsAre(HasSubstr("it does not tell what is in the way.")));
  one.failure->then.granted_bytes = kMiB;
  EXPECT_THAT(answers_of({one}), ElementsAre(HasSubstr("what is live lies in the way: an empty")));
  one.failure->cured_by = "none";
  one.failure->then.granted_bytes.reset();
  EXPECT_THAT(answers_of({one}), ElementsAre(HasSubstr("it is more than the limit leaves")));
  one.failure->cured_by = "a way of later versions";
  EXPECT_THAT(answers_of({one}), ElementsAre(HasSubstr("; a way of later versions.")));
}

TEST(ReplayAnswers, FailuresThatAreAlikeAreSaidOnce) {
  AllocatorRecord whole;
  whole.name = "pool";
  EXPECT_THAT(
      answers_of({whole, failing("a", "trim"), failing("b", "none"), failing("c", "trim")}),
      ElementsAre(StartsWith("a and c fail at event 7, "), StartsWith("b fails at event 7, ")));
}

TEST(ReplayAnswers, EachAllocatorsRecoveriesAndKeptMemoryAreSaid) {
  std::vector<AllocatorRecord> all(3);
  all[0].name = "a";
  all[0].memory_kept_bytes = 0;
  all[1].name = "b";
  all[1].recoveries = 2;
  all[1].memory_kept_bytes = -5;
  all[2].name = "c";
  all[2].memory_kept_bytes = 1;
  EXPECT_THAT(answers_of(all),
              ElementsAre(StartsWith("2 of 1 allocations of b failed"),
                          "After c the GPU has 1 B less than before: the driver keeps it, or it "
                          "was not given back, or another process took it."));
  all[2].memory_kept_bytes.reset();
  EXPECT_THAT(answers_of(all), SizeIs(1));
}

AllocatorRecord creeping(const char* name, const char* kind, double bytes_per_epoch = 0) {
  AllocatorRecord made;
  made.name = name;
  made.creep.emplace().kind = kind;
  made.creep->bytes_per_epoch = bytes_per_epoch;
  return made;
}

TEST(ReplayAnswers, CreepIsSaidOfEachThatWasLookedAt) {
  AllocatorRecord unasked;
  unasked.name = "z";
  EXPECT_THAT(answers_of({unasked,
                          creeping("a", "none"),
                          creeping("b", "fragmentation", 1),
                          creeping("c", "cache_plateau"),
                          creeping("d", "none"),
                          creeping("e", "of later versions")}),
              ElementsAre("b: the allocator takes more and more memory, while the program holds no "
                          "more, 1 B in each epoch.",
                          "c: the allocator took more memory at first, and none since.",
                          "e: of later versions.",
                          "Memory does not creep with a and d."));
}

TEST(ReplayAnswers, RareCreepIsLookedForWhereMemorySeemsToStandStill) {
  AllocatorRecord leak = creeping("a", "leak"), plateau = creeping("b", "cache_plateau"),
                  steady = creeping("c", "none");
  for (AllocatorRecord* const one : {&leak, &plateau, &steady}) {
    one->creep->rarest_step_epochs = 1;
    one->creep->epochs.assign(6, EpochRecord{kMiB, kMiB, kMiB});
  }
  leak.creep->epochs.resize(50);
  plateau.creep->epochs.push_back({kMiB, kMiB, kMiB});
  AllocatorRecord unasked;
  EXPECT_THAT(answers_of({leak}), SizeIs(1));
  EXPECT_THAT(
      answers_of({unasked, leak, plateau}),
      ElementsAre(_, _, StartsWith("7 epochs show only what grows at least once in 1 epoch:")));
  EXPECT_THAT(answers_of({steady}), Contains(StartsWith("6 epochs show only")));
  plateau.creep->epochs.back().live_bytes = kMiB + 1;
  EXPECT_THAT(answers_of({plateau}), Contains(HasSubstr("the program holds 1 B more than after")));
}

TEST(ReplayAnswers, WhatTheTraceLeavesLiveIsSaidBesideCreep) {
  ReplayRecord record;
  record.trace.live_bytes_at_end = 1;
  EXPECT_THAT(replay_answers(record), IsEmpty());
  record.allocators = {creeping("a", "none")};
  EXPECT_THAT(replay_answers(record),
              ElementsAre("Memory does not creep with a.",
                          "The trace leaves 1 B live, which each epoch gave back: whether the "
                          "recorded program leaks is not seen here."));
  record.trace.live_bytes_at_end = 0;
  EXPECT_THAT(replay_answers(record), SizeIs(1));
  record.trace.live_bytes_at_end = 1;
  record.injected.emplace();
  EXPECT_THAT(replay_answers(record), SizeIs(1));
}

}  // namespace
}  // namespace launchgap
