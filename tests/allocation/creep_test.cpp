#include "harness/allocation/creep.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "harness/allocation/patterns.h"
#include "harness/core/errors.h"

namespace launchgap::allocation {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// Epochs of a pattern on an allocator over simulated memory.
std::vector<EpochRecord> epochs_of(const std::string& pattern,
                                   std::string_view allocator,
                                   const std::string& inject) {
  const auto trace = make_pattern(CaseName::parse(pattern), 1);
  const Script script = script_of(*trace, 0);
  constexpr std::uint64_t kLimit = std::uint64_t{64} << 30;
  SimulatedMemory memory(kLimit);
  BlockPlayer player(memory, block_allocator_named(allocator), kLimit);
  return play_epochs(
      script,
      player,
      50,
      inject.empty() ? Injection{} : parse_injection(inject),
      [&] { return memory.taken_bytes(); },
      [&](std::uint64_t bytes) { memory.take(bytes); });
}

CreepKind kind_of(const std::string& allocator, const std::string& inject) {
  return classify_creep(epochs_of("training/allocations:1000", allocator, inject)).kind;
}

TEST(Creep, EachClassIsToldOnEachAllocator) {
  for (const std::string allocator : {"caching", "caching_expandable", "bfc_growth", "bfc_vmm"}) {
    EXPECT_EQ(kind_of(allocator, ""), CreepKind::none) << allocator;
    EXPECT_EQ(kind_of(allocator, "leak=64KiB/epoch"), CreepKind::leak) << allocator;
    EXPECT_EQ(kind_of(allocator, "context=1MiB/epoch"), CreepKind::context_growth) << allocator;
  }
  // What regions double for is there already.
  for (const std::string allocator : {"caching", "caching_expandable"})
    EXPECT_EQ(kind_of(allocator, "pin=4MiB/epoch"), CreepKind::fragmentation) << allocator;
  EXPECT_EQ(kind_of("caching", "cache=2MiB/epoch"), CreepKind::cache_plateau);
}

TEST(Creep, ALeakIsMeasured) {
  const Creep creep = classify_creep(epochs_of("thrash/cycles:5", "caching", "leak=64KiB"));
  EXPECT_EQ(creep.kind, CreepKind::leak);
  EXPECT_DOUBLE_EQ(creep.bytes_per_epoch, 65536);
  EXPECT_LT(creep.p, 1e-6);
}

std::vector<EpochRecord> reserved(const std::vector<double>& mib) {
  std::vector<EpochRecord> epochs;
  for (const double one : mib)
    epochs.push_back(
        {kMiB, static_cast<std::uint64_t>(one * kMiB), static_cast<std::uint64_t>(one * kMiB)});
  return epochs;
}

TEST(Creep, WhatOnlyWobblesIsNone) {
  std::vector<double> wobbling;
  for (int i = 0; i < 50; ++i) wobbling.push_back(100 + i * 7919 % 13);
  wobbling.front() = 120;
  EXPECT_EQ(classify_creep(reserved(wobbling)).kind, CreepKind::none);
}

TEST(Creep, WhatRoseAndStandsIsAPlateau) {
  std::vector<double> rising(50, 400);
  for (std::size_t i = 0; i < 25; ++i) rising[i] = 150 + 10.0 * static_cast<double>(i);
  EXPECT_EQ(classify_creep(reserved(rising)).kind, CreepKind::cache_plateau);
}

TEST(Creep, RareStepsAreCreepAsLongAsTheyGoOn) {
  std::vector<double> steps;
  for (int i = 0; i < 50; ++i)
    steps.push_back(i < 10 ? 100 : i < 20 ? 120 : i < 30 ? 140 : i < 40 ? 160 : 180);
  EXPECT_EQ(classify_creep(reserved(steps)).kind, CreepKind::fragmentation);
}

TEST(Creep, OneStepIsAnEventAndNoTrend) {
  std::vector<EpochRecord> epochs(50, {kMiB, kMiB, kMiB});
  for (std::size_t i = 38; i < epochs.size(); ++i) epochs[i].used_bytes += 2 * kMiB;
  EXPECT_EQ(classify_creep(epochs).kind, CreepKind::none);
}

/// Epochs of which the device's use is this, in MiB.
std::vector<EpochRecord> used(const std::vector<double>& mib) {
  std::vector<EpochRecord> epochs;
  for (const double one : mib)
    epochs.push_back({kMiB, kMiB, static_cast<std::uint64_t>((10'000 + one) * kMiB)});
  return epochs;
}

TEST(Creep, WhatOthersTakeAndGiveBackIsNoGrowth) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> step;
  for (const std::size_t epochs : {20u, 50u, 200u}) {
    int walks = 0;
    constexpr int kSeries = 500;
    for (int i = 0; i < kSeries; ++i) {
      std::vector<double> walk;
      double at = 0;
      for (std::size_t k = 0; k < epochs; ++k) walk.push_back(at += 8 * step(random));
      walks += classify_creep(used(walk)).kind == CreepKind::context_growth;
    }
    EXPECT_LE(walks, 5) << epochs << " epochs: 1 in 100; the test for a trend alone says 12 to 30";
  }
}

/// Epochs of which the device's use takes these steps, in turn, 24 in all; in KiB.
std::vector<EpochRecord> used_in_steps(const std::vector<int>& kib) {
  std::vector<EpochRecord> epochs;
  std::uint64_t at = 10'000 * kMiB;
  for (std::size_t i = 0; i < 30; ++i) {
    epochs.push_back({kMiB, kMiB, at});
    at += static_cast<std::uint64_t>(kib[i % kib.size()] * 1024);
  }
  return epochs;
}

TEST(Creep, GrowthOfTheDevicesUseIsInTheNumberOfStepsOrInTheirSum) {
  // As often down as up, and ten times as far up: 9 KiB an epoch, of 11 that they scatter.
  EXPECT_EQ(classify_creep(used_in_steps({20, -2})).kind, CreepKind::context_growth);
  EXPECT_EQ(classify_creep(used_in_steps({20, -16})).kind, CreepKind::none)
      << "2 KiB, of 18 that they scatter";
  // Alike up and down, so that only their number tells: a coin throws 19 or more of 24 once in 300
  // times, and 18 or more once in 88.
  EXPECT_EQ(classify_creep(used_in_steps({4, 4, 4, 4, -4})).kind, CreepKind::context_growth);
  EXPECT_EQ(classify_creep(used_in_steps({4, 4, 4, -4})).kind, CreepKind::none);
  // Never down; one step is so large that the sum shows nothing.
  std::vector<EpochRecord> epochs = used_in_steps({4, 0});
  for (std::size_t i = 20; i < epochs.size(); ++i) epochs[i].used_bytes += kMiB;
  EXPECT_EQ(classify_creep(epochs).kind, CreepKind::context_growth);
}

TEST(Creep, WhatRisesByLessThanAPageInAllIsNone) {
  for (const std::uint64_t in_all : {4095u, 4096u}) {
    std::vector<EpochRecord> epochs(30, {kMiB, kMiB, kMiB});
    for (std::size_t i = kBurnIn; i < epochs.size(); ++i)
      epochs[i].live_bytes = epochs[i].reserved_bytes = epochs[i].used_bytes =
          kMiB + in_all * (i - kBurnIn) / (epochs.size() - 1 - kBurnIn);
    EXPECT_EQ(classify_creep(epochs).kind, in_all == 4096 ? CreepKind::leak : CreepKind::none);
  }
}

TEST(Creep, GrowthIsFoundBesideTheNoiseOfOthers) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> noise;
  int found = 0;
  constexpr int kSeries = 200;
  for (int i = 0; i < kSeries; ++i) {
    std::vector<double> rising;
    for (int k = 0; k < 50; ++k) rising.push_back(k + 0.5 * noise(random));
    found += classify_creep(used(rising)).kind == CreepKind::context_growth;
  }
  EXPECT_GE(found, kSeries * 95 / 100);
}

TEST(Creep, HowRareAStepMayBeIsKnown) {
  EXPECT_EQ(rarest_step_shown(19), 0u);
  for (const std::size_t epochs : {20u, 50u, 100u}) {
    const std::size_t apart = rarest_step_shown(epochs);
    RecordProperty(std::to_string(epochs), static_cast<int>(apart));
    ASSERT_GE(apart, 1u) << epochs;
    // Wherever they fall, steps as far apart are a leak; and of steps that are farther some are
    // not.
    for (const std::size_t asked : {apart, apart + 1}) {
      std::size_t leaks = 0;
      for (std::size_t first = 0; first < asked; ++first) {
        std::vector<EpochRecord> leaking;
        for (std::size_t i = 0; i < epochs; ++i) {
          const std::uint64_t live = kMiB + (i + first) / asked * kMiB;
          leaking.push_back({live, live, live});
        }
        leaks += classify_creep(leaking).kind == CreepKind::leak;
      }
      EXPECT_EQ(leaks == asked, asked == apart) << epochs << " epochs, every " << asked;
    }
  }
  EXPECT_LT(rarest_step_shown(20), 10u) << "1 MiB every 10 epochs is not seen in 20";
  EXPECT_GE(rarest_step_shown(100), 25u) << "and every 25 it is seen in 100";
}

TEST(Creep, FewEpochsSayNothing) {
  EXPECT_EQ(classify_creep(reserved({1, 2, 3, 4, 5, 6, 7, 8, 9})).kind, CreepKind::none);
}

TEST(Creep, InjectionsAreReadAsWritten) {
  EXPECT_EQ(parse_injection("leak=64KiB/epoch").bytes, 65536u);
  EXPECT_EQ(parse_injection("pin=2MiB").bytes, 2 * kMiB);
  EXPECT_EQ(parse_injection("cache=7").bytes, 7u);
  for (const char* const text : {"",
                                 "leak",
                                 "leak=",
                                 "leak=0",
                                 "leak=-1",
                                 "leak=1XiB",
                                 "drip=1MiB",
                                 "leak=99999999999GiB",
                                 "leak=1MiB/day"})
    EXPECT_THROW(parse_injection(text), UsageError) << text;
}

}  // namespace
}  // namespace launchgap::allocation
