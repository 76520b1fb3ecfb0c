#include <gmock/gmock.h>

#include "tests/summary/made.h"
#include "tests/summary/made_process.h"

namespace launchgap {
namespace {

using namespace testing;

/// Launch calls of a recording of 1000 ns, so many in so much time, and one part of them.
MadeProcess with_part(const TailPart& part, std::uint64_t launches, std::int64_t time_ns) {
  MadeProcess made;
  made.job.extent_ns = 1000;
  LaunchTail& tail = made.job.tail.emplace();
  tail.launches = launches;
  tail.time_ns = time_ns;
  tail.p50_ns = 3;
  tail.parts = {part};
  return made;
}

std::vector<Finding> launch_causes(const MadeProcess& made) {
  return made.found_by(add_launch_causes);
}

TEST(LaunchCauses, AreNoneWithoutATail) {
  EXPECT_THAT(launch_causes(MadeProcess()), IsEmpty());
}

TEST(LaunchCauses, FirstLaunchesAreToldFromAShareOn) {
  const struct {
    std::int64_t part_ns, all_ns;
    bool told, act;
  } cases[] = {{5, 1000, true, false},
               {4, 1000, false, false},
               {4, 40, true, false},
               {4, 41, false, false},
               {1, 10, true, false},
               {9, 1000, true, false},
               {10, 1000, true, true}};
  for (const auto& [part_ns, all_ns, told, act] : cases) {
    const std::vector<Finding> found =
        launch_causes(with_part({"first-launch", 2, part_ns, 3, 500, ""}, 900, all_ns));
    ASSERT_THAT(found, SizeIs(told ? 1 : 0)) << part_ns << " of " << all_ns;
    if (told) {
      EXPECT_EQ(found[0].severity, act ? Severity::act : Severity::note) << part_ns;
    }
  }
  MadeProcess longer = with_part({"first-launch", 2, 1, 1, 500, ""}, 900, 10);
  longer.job.extent_ns = 1001;
  EXPECT_THAT(launch_causes(longer), IsEmpty()) << "less than a thousandth of the recording";
}

TEST(LaunchCauses, SayWhichLaunchesTheyAre) {
  const struct {
    std::uint64_t launches, last, all;
    const char* sentence;
  } cases[] = {
      {1, 1, 1, "The only launch took 20 ns: a first launch, which probably loaded code."},
      {1,
       1,
       10,
       "1 of 10 launches took 20 ns, 50 % of all launch time, the very first: a first launch, "
       "which probably loaded code."},
      {1,
       1,
       9,
       "1 of 9 launches took 20 ns, 50 % of all launch time: a first launch, which probably loaded "
       "code."},
      {1,
       2,
       20,
       "1 of 20 launches took 20 ns, 50 % of all launch time, among the first 2: a first launch, "
       "which probably loaded code."},
      {2,
       2,
       20,
       "2 of 20 launches took 20 ns, 50 % of all launch time, both among the first 2: first "
       "launches, which probably loaded code."},
      {3,
       100,
       1000,
       "3 of 1,000 launches took 20 ns, 50 % of all launch time, all among the first 100: first "
       "launches, which probably loaded code."},
      {3,
       101,
       2000,
       "3 of 2,000 launches took 20 ns, 50 % of all launch time: first launches, which probably "
       "loaded code."},
      {3,
       3,
       29,
       "3 of 29 launches took 20 ns, 50 % of all launch time: first launches, which probably "
       "loaded "
       "code."},
  };
  for (const auto& [launches, last, all, sentence] : cases)
    EXPECT_EQ(only(launch_causes(with_part({"first-launch", launches, 20, 9, last, ""}, all, 40)))
                  .sentence,
              sentence);
}

TEST(LaunchCauses, ShowWhatMostOfTheTimeIsOfWhereThatIsKnown) {
  TailPart part = {"first-launch", 2, 20, 9, 500, "gemm"};
  EXPECT_THAT(only(launch_causes(with_part(part, 900, 40))).evidence, SizeIs(4));
  part.what_ns = 1;
  const Finding found = only(launch_causes(with_part(part, 900, 40)));
  ASSERT_THAT(found.evidence, SizeIs(5));
  EXPECT_EQ(text_of(found.evidence[0]), "launches: 2");
  EXPECT_EQ(text_of(found.evidence[3]), "any launch call, p50: 3 ns");
  EXPECT_EQ(text_of(found.evidence[4]), "most of it: gemm, 1 ns");
}

/// Firsts of four kernels that are told: a hundredth of the recording, and not by chance.
FirstLaunches slower_firsts() {
  FirstLaunches firsts;
  firsts.kernels = 4;
  firsts.chance = 0.01;
  firsts.first_p50_ns = 15;
  firsts.later_p50_ns = 10;
  firsts.next_p50_ns = 10;
  firsts.extra_ns = 5;
  return firsts;
}

TEST(LaunchCauses, FirstLaunchesAreSlowerByHalfAndNotByChance) {
  const auto told = [](const auto& change) {
    MadeProcess made;
    change(made.job.first_launches.emplace(slower_firsts()));
    return !launch_causes(made).empty();
  };
  EXPECT_TRUE(told([](FirstLaunches&) {}));
  EXPECT_FALSE(told([](FirstLaunches& own) { own.chance = 0.0101; }));
  EXPECT_FALSE(told([](FirstLaunches& own) { own.first_p50_ns = 14.875; }));
  EXPECT_FALSE(told([](FirstLaunches& own) { own.next_p50_ns = 10.125; }));
  EXPECT_FALSE(told([](FirstLaunches& own) { own.later_p50_ns = 10.125; }));
  EXPECT_FALSE(told([](FirstLaunches& own) { own.extra_ns = 4; })) << "they cost too little";
  EXPECT_FALSE(told([](FirstLaunches& own) {
    own.extra_ns = 4;
    own.slow_firsts = 1;
  })) << "of no slow launch";
  for (const std::uint64_t slow : {4u, 5u}) {
    EXPECT_EQ(told([&](FirstLaunches& own) {
                own.extra_ns = 4;
                own.slow = slow;
                own.slow_firsts = 1;
              }),
              slow == 4);
  }
  for (const double first : {99.0, 100.0}) {
    EXPECT_EQ(told([&](FirstLaunches& own) {
                own.extra_ns = 4;
                own.first_p50_ns = first;
              }),
              first == 100);
  }
}

TEST(LaunchCauses, FirstLaunchesOfOneSlowLaunchAreToldByIt) {
  MadeProcess made;
  FirstLaunches& firsts = made.job.first_launches.emplace(slower_firsts());
  firsts.extra_ns = 1;
  firsts.slow = firsts.slow_firsts = 1;
  EXPECT_THAT(launch_causes(made), SizeIs(1));
}

TEST(LaunchCauses, FirstLaunchesAreToldByTheirMediansWhereNoPartHasHalfOfTheirCost) {
  const auto found = [](std::uint64_t launches, std::int64_t part_ns) {
    MadeProcess made = with_part({"first-launch", launches, part_ns, part_ns, 500, ""}, 900, 1000);
    made.job.first_launches = slower_firsts();
    made.job.first_launches->extra_ns = 8;
    return only(launch_causes(made));
  };
  EXPECT_THAT(found(1, 4).sentence, StartsWith("1 of 900 launches took 4 ns, 0.4 %"));
  EXPECT_THAT(found(1, 4).evidence, SizeIs(8));
  const Finding by_median = found(1, 3);
  EXPECT_EQ(by_median.sentence,
            "The first launch of a kernel takes 15 ns, a later one 10 ns (p50): 8 ns more in all, "
            "for 4 kernels.");
  EXPECT_EQ(by_median.share, 0.008);
  EXPECT_THAT(by_median.evidence, SizeIs(4));
  EXPECT_THAT(found(0, 4).sentence, StartsWith("The first launch of a kernel"));
}

TEST(LaunchCauses, OtherPartsAreToldFromTheirSharesOn) {
  const struct {
    const char* cause;
    std::int64_t part_ns, all_ns;
    std::vector<Severity> severity;
  } cases[] = {{"host-pause", 5, 50, {Severity::note}},
               {"host-pause", 5, 51, {}},
               {"host-pause", 4, 4, {}},
               {"host-pause", 9, 9, {Severity::note}},
               {"host-pause", 10, 10, {Severity::act}},
               {"unexplained", 5, 5, {Severity::open}},
               {"recorder", 10, 10, {Severity::note}}};
  for (const auto& [cause, part_ns, all_ns, severity] : cases) {
    std::vector<Severity> found;
    for (const Finding& one :
         launch_causes(with_part({cause, 3, part_ns, 9, 500, ""}, 900, all_ns)))
      found.push_back(one.severity);
    EXPECT_EQ(found, severity) << cause << " " << part_ns << " of " << all_ns;
  }
}

TEST(LaunchCauses, EachPartIsTold) {
  MadeProcess made = with_part({"queue-full", 3, 2, 9, 500, ""}, 900, 30);
  made.job.tail->parts.push_back({"overlapping-call", 3, 3, 9, 500, ""});
  made.job.tail->parts.push_back({"host-pause", 3, 10, 9, 500, ""});
  made.job.tail->parts.push_back({"unexplained", 3, 12, 9, 500, "gemm", 0, 12});
  EXPECT_THAT(made.codes_by(add_launch_causes), ElementsAre("host-pauses", "unexplained-launches"));
  made.job.tail->parts[1].time_ns = 6;
  EXPECT_THAT(launch_causes(made)[0].sentence,
              HasSubstr("another thread was in another call meanwhile"));
}

TEST(LaunchCauses, WhatIsUnexplainedNamesAKernelThatHasHalfOfIt) {
  const auto sentence = [](std::uint64_t launches, std::int64_t of_it_ns, const char* what) {
    return only(launch_causes(
                    with_part({"unexplained", launches, 20, 9, 500, what, 0, of_it_ns}, 900, 40)))
        .sentence;
  };
  EXPECT_THAT(sentence(2, 10, "k"), EndsWith("says why; launches of k are 50 % of it."));
  EXPECT_THAT(sentence(2, 9, "k"), EndsWith("says why."));
  EXPECT_THAT(sentence(1, 20, "k"), EndsWith("says why."));
  EXPECT_THAT(sentence(2, 20, ""), EndsWith("says why."));
}

// --- Words --------------------------------------------------------------------------------------

TEST(CauseText, NamesAFunctionWithoutItsArguments) {
  EXPECT_EQ(cause_text::name("gemm(int, float)"), "gemm");
  EXPECT_EQ(cause_text::name("gemm<int (*)(int)>(int)"), "gemm<int (*)(int)>");
  EXPECT_EQ(cause_text::name("a<b<int>, c(d)>(int)"), "a<b<int>, c(d)>");
  EXPECT_EQ(cause_text::name("at::(anonymous namespace)::sum(int)"),
            "at::(anonymous namespace)::sum");
  EXPECT_EQ(cause_text::name("(anonymous namespace)::sum(int)"), "(anonymous namespace)::sum");
  EXPECT_EQ(cause_text::name("g(int)"), "g");
  EXPECT_EQ(cause_text::name("(f)"), "(f)");
  EXPECT_EQ(cause_text::name("f(int)(int)"), "f");
  EXPECT_EQ(cause_text::name(""), "");
}

TEST(CauseText, GroupsDigitsByThrees) {
  EXPECT_EQ(cause_text::grouped(0), "0");
  EXPECT_EQ(cause_text::grouped(999), "999");
  EXPECT_EQ(cause_text::grouped(1000), "1,000");
  EXPECT_EQ(cause_text::grouped(123456), "123,456");
  EXPECT_EQ(cause_text::grouped(1234567), "1,234,567");
}

TEST(CauseText, AChanceIsNeverZero) {
  EXPECT_EQ(cause_text::chance(1e-12), "1e-12");
  EXPECT_EQ(cause_text::chance(9e-13), "below 1e-12");
  EXPECT_EQ(cause_text::chance(0.004), "0.004");
}

}  // namespace
}  // namespace launchgap
