#include <random>

#include <gmock/gmock.h>

#include "tests/summary/made.h"
#include "tests/summary/made_process.h"

namespace launchgap {
namespace {

using namespace testing;

std::vector<Finding> kernel_causes(const MadeProcess& made) {
  return made.found_by(add_kernel_causes);
}

/// Whose four repetitions take longer or shorter in the later half.
CountedKernels changing(const char* name, double early_ns, double late_ns, double chance = 0) {
  CountedKernels kernel;
  kernel.name = name;
  kernel.repeats = 4;
  kernel.early_ns = early_ns;
  kernel.late_ns = late_ns;
  kernel.change_chance = chance;
  return kernel;
}

/// Half of whose eight runs take longer by this.
CountedKernels with_modes(const char* name, double apart_ns) {
  CountedKernels kernel;
  kernel.name = name;
  kernel.count = 8;
  kernel.slow_mode_share = 0.5;
  kernel.fast_mode_ns = 7;
  kernel.modes_apart_ns = apart_ns;
  return kernel;
}

/// Beside another kernel, in so much time of all.
MadeProcess with_kernels(std::vector<CountedKernels> kernels, std::uint64_t total_ns) {
  MadeProcess made;
  made.kernels = std::move(kernels);
  made.kernels
      .insert(made.kernels.begin(), CountedKernels{.name = "other", .grid = {}, .block = {}})
      ->total_ns = total_ns;
  return made;
}

TEST(KernelCauses, AreNoneOfKernelsThatStayAsTheyAre) {
  EXPECT_THAT(kernel_causes(MadeProcess()), IsEmpty());
  EXPECT_THAT(kernel_causes(with_kernels({}, 0)), IsEmpty());
}

TEST(KernelCauses, AKernelHasChangedByATwentiethWorthAHalfPercent) {
  const struct {
    double early_ns, late_ns;
    std::uint64_t total_ns;
    bool told;
  } cases[] = {{100, 105, 4000, true},
               {100, 104.875, 100, false},
               {105, 100, 4000, true},
               {100, 105, 4001, false},
               {104.875, 100, 100, false}};
  for (const auto& [early_ns, late_ns, total_ns, told] : cases)
    EXPECT_THAT(kernel_causes(with_kernels({changing("k", early_ns, late_ns)}, total_ns)),
                SizeIs(told ? 1 : 0))
        << early_ns << " then " << late_ns << " of " << total_ns;
}

TEST(KernelCauses, OfManyKernelsEachMustBeMoreCertain) {
  EXPECT_THAT(kernel_causes(with_kernels({changing("k", 100, 200, 0.01)}, 100)), SizeIs(1));
  EXPECT_THAT(kernel_causes(with_kernels({changing("k", 100, 200, 0.0101)}, 100)), IsEmpty());
  CountedKernels untested = changing("u", 100, 200);
  untested.change_chance.reset();
  const auto of_two = [&](double chance) {
    return kernel_causes(
        with_kernels({untested, changing("k", 100, 200, chance), changing("s", 1, 1, 1)}, 100));
  };
  EXPECT_THAT(of_two(0.0051), IsEmpty());
  EXPECT_THAT(only(of_two(0.005)).sentence, StartsWith("k takes 200 ns in the later half"));
}

TEST(KernelCauses, OfManyKernelsOneThatDiffersByChanceIsNotNamed) {
  // Chances as they are where nothing changes: uniform.
  std::mt19937_64 random(4);
  std::uniform_real_distribution<> uniform;
  constexpr int kProcesses = 1000;
  int told = 0;
  for (int i = 0; i < kProcesses; ++i) {
    std::vector<CountedKernels> kernels;
    for (int k = 0; k < 60; ++k) kernels.push_back(changing("k", 1e6, 1.2e6, uniform(random)));
    told += !kernel_causes(with_kernels(std::move(kernels), 15'000'000)).empty();
  }
  EXPECT_LE(told, 20) << "1 in 100, of " << kProcesses;
  EXPECT_GE(told, 3) << "the rule says nothing";
}

TEST(KernelCauses, AChangeCostsHalfOfItOverAllRepetitions) {
  Finding found = only(kernel_causes(with_kernels({changing("k", 100, 110)}, 1000)));
  EXPECT_EQ(found.severity, Severity::act) << "20 ns of 1000";
  EXPECT_EQ(found.share, 0.02);
  EXPECT_EQ(found.sentence,
            "k takes 110 ns in the later half and took 100 ns in the earlier, launched with the "
            "same name and grid.");
  EXPECT_THAT(found.remedy, StartsWith("See whether its input changed."));
  found = only(kernel_causes(with_kernels({changing("k", 100, 110)}, 1001)));
  EXPECT_EQ(found.severity, Severity::note);
}

TEST(KernelCauses, WhatBecameFasterCostsNothing) {
  const Finding found = only(kernel_causes(with_kernels(
      {changing("fast", 110, 100), changing("k", 100, 109), changing("l", 100, 111)}, 1000)));
  EXPECT_DOUBLE_EQ(found.share.value(), 0.04);
  EXPECT_EQ(found.severity, Severity::act);
  EXPECT_THAT(found.sentence,
              AllOf(StartsWith("l takes 111 ns"), EndsWith("; 3 of 3 such kernels changed.")));
  const Finding faster = only(kernel_causes(with_kernels({changing("fast", 200, 100)}, 1000)));
  EXPECT_EQ(faster.severity, Severity::note);
  EXPECT_EQ(faster.share, std::nullopt);
}

TEST(KernelCauses, WhatGrowsAllTheWayOrTalksIsNothingToActOn) {
  CountedKernels ramp = changing("k", 100, 200);
  ramp.ramp = true;
  Finding found = only(kernel_causes(with_kernels({ramp}, 1000)));
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_THAT(found.sentence, EndsWith("grid: it grows or shrinks all the way."));
  EXPECT_THAT(found.remedy, StartsWith("Its work probably changes"));
  EXPECT_EQ(found.share, 0.2);
  found = only(kernel_causes(with_kernels({changing("ncclDevKernel_AllReduce", 100, 200)}, 1000)));
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_THAT(found.remedy, StartsWith("Its time contains waiting"));
}

TEST(KernelCauses, ThreeKernelsAreNamedAndTheOthersCounted) {
  std::vector<CountedKernels> kernels;
  for (const char* const name : {"a", "b", "c"}) kernels.push_back(changing(name, 100, 200));
  EXPECT_THAT(only(kernel_causes(with_kernels(kernels, 1000))).evidence, SizeIs(3));
  kernels.push_back(changing("d", 100, 300));
  const Finding found = only(kernel_causes(with_kernels(kernels, 1000)));
  std::vector<std::string> lines;
  for (const Evidence& line : found.evidence) lines.push_back(text_of(line));
  EXPECT_THAT(lines,
              ElementsAre(StartsWith("d: 100 ns then 300 ns a repetition, of 4, chance"),
                          StartsWith("a: "),
                          StartsWith("b: "),
                          "1 more: kernels.csv"));
}

TEST(KernelCauses, ModesAreToldFromAHalfPercentOn) {
  EXPECT_THAT(kernel_causes(with_kernels({with_modes("k", 5)}, 4001)), IsEmpty());
  Finding found = only(kernel_causes(with_kernels({with_modes("k", 5)}, 4000)));
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_EQ(found.share, 0.02);
  EXPECT_EQ(found.sentence,
            "k takes 7 ns or 12 ns at the same place of the same work: its times form two "
            "clusters.");
  found = only(kernel_causes(with_kernels({with_modes("k", 5)}, 1000)));
  EXPECT_EQ(found.severity, Severity::act) << "20 ns of 1000";
  found = only(kernel_causes(with_kernels({with_modes("k", 5)}, 1001)));
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_THAT(
      kernel_causes(with_kernels({CountedKernels{.name = "empty", .grid = {}, .block = {}}}, 0)),
      IsEmpty());
}

TEST(KernelCauses, OfSeveralWithModesTheCostliestIsNamedFirst) {
  std::vector<CountedKernels> kernels = {with_modes("k", 3), with_modes("l", 4)};
  EXPECT_THAT(only(kernel_causes(with_kernels(kernels, 1000))).sentence,
              AllOf(StartsWith("l takes 7 ns or 11 ns"),
                    EndsWith("two clusters, and so do those of 1 other kernel.")));
  kernels.push_back(with_modes("ncclDevKernel_AllReduce", 2));
  const Finding found = only(kernel_causes(with_kernels(kernels, 1400)));
  EXPECT_EQ(found.severity, Severity::act) << "28 ns of 1400, without the collective's";
  EXPECT_EQ(found.share, 0.036);
  EXPECT_THAT(found.sentence, EndsWith("those of 2 other kernels."));
  EXPECT_EQ(only(kernel_causes(with_kernels(kernels, 1401))).severity, Severity::note);
}

TEST(KernelCauses, AKernelThatHasChangedIsNotToldAgainByItsModes) {
  CountedKernels both = changing("k", 100, 200);
  both.count = 8;
  both.slow_mode_share = 0.5;
  both.fast_mode_ns = 100;
  both.modes_apart_ns = 100;
  EXPECT_EQ(only(kernel_causes(with_kernels({both}, 1000))).code, "kernel-changed");
  both.change_chance = 1;
  EXPECT_EQ(only(kernel_causes(with_kernels({both}, 1000))).code, "kernel-modes");
}

}  // namespace
}  // namespace launchgap
