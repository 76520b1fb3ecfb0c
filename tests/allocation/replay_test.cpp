#include "harness/allocation/replay.h"

#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>

#include "harness/allocation/patterns.h"
#include "harness/allocation/smallest_limit.h"
#include "harness/core/clock.h"
#include "harness/core/errors.h"

namespace launchgap::allocation {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::unique_ptr<Trace> pattern(const std::string& name, std::uint64_t seed = 1) {
  return make_pattern(CaseName::parse(name), seed);
}

Replay play(Trace& trace, std::string_view allocator, std::uint64_t limit) {
  SimulatedMemory memory(limit);
  BlockPlayer player(memory, block_allocator_named(allocator), limit);
  return replay(trace, facts_of(trace, {}), player, {});
}

TEST(Replay, CountsWhatTheTraceAsksFor) {
  const auto trace = pattern("checkerboard/blocks:8/bytes:1048576");
  const TraceFacts facts = facts_of(*trace, {});
  EXPECT_EQ(facts.events, 12u);
  EXPECT_EQ(facts.allocations, 8u);
  EXPECT_EQ(facts.releases, 4u);
  EXPECT_EQ(facts.peak_live_bytes, 8 * kMiB);
  EXPECT_EQ(facts.peak_event, 7u);
  EXPECT_EQ(facts.live_at_end, 4u);
  EXPECT_EQ(facts.live_bytes_at_end, 4 * kMiB);
  const Replay done = play(*trace, "bfc", 8 * kMiB);
  EXPECT_TRUE(done.completed);
  EXPECT_EQ(done.allocations, 8u);
  EXPECT_EQ(done.releases, 4u);
  EXPECT_EQ(done.peak_reserved_bytes, 8 * kMiB);
  ASSERT_TRUE(done.at_peak);
  EXPECT_EQ(done.at_peak->live_bytes, 8 * kMiB);
  EXPECT_EQ(done.moments.back().largest_block_index, 1 - 2.0 / 8);
  EXPECT_EQ(done.allocate_times.n(), 8u);
}

TEST(Replay, ThePicturesAreOfWhatIsHeld) {
  const auto trace = pattern("checkerboard/blocks:10");
  const Replay done = play(*trace, "bfc", 10 * kMiB);
  ASSERT_TRUE(done.at_peak);
  EXPECT_EQ(done.at_peak->occupancy, std::string(100, '*'));
  std::string board;
  for (int i = 0; i < 5; ++i) board += std::string(10, '*') + std::string(10, '_');
  ASSERT_EQ(done.moments.size(), 15u) << "of a short trace each event, and none twice";
  EXPECT_EQ(done.moments.back().occupancy, board);
}

TEST(Replay, MomentsAreSpreadOverALongTrace) {
  const auto trace = pattern("training/allocations:20000");
  const Replay done = play(*trace, "bfc_growth", kLargestLimit);
  EXPECT_TRUE(done.completed);
  EXPECT_NEAR(static_cast<double>(done.moments.size()), 400, 10);
  const auto pictures = std::ranges::count_if(
      done.moments, [](const MemoryMoment& moment) { return moment.occupancy.has_value(); });
  EXPECT_NEAR(static_cast<double>(pictures), 25, 2);
  EXPECT_LT(done.moments[199].event, 21000u);
  EXPECT_GT(done.moments[199].event, 19000u);
}

TEST(Replay, OneDeviceOfSeveral) {
  std::vector<TraceEvent> events;
  for (std::uint64_t id = 0; id < 5; ++id)
    events.push_back({0, id, kMiB, 0, id < 3 ? 7u : 9u, 0, 0, Op::alloc});
  TraceInMemory trace({}, events);
  EXPECT_EQ(facts_of(trace, {}).device, 7u);
  EXPECT_EQ(facts_of(trace, {}).other_allocations, 2u);
  EXPECT_EQ(facts_of(trace, 9).allocations, 2u);
  EXPECT_EQ(facts_of(trace, 1).allocations, 0u);
}

/// How long that many allocations take where there are so many nanoseconds between two.
std::int64_t paced_ns(std::uint64_t allocations, std::int64_t apart_ns) {
  std::vector<TraceEvent> events;
  for (std::uint64_t id = 0; id < allocations; ++id)
    events.push_back(
        {static_cast<std::int64_t>(id) * apart_ns + 77, id, 512, 0, 0, 0, 0, Op::alloc});
  TraceInMemory trace({}, events);
  SimulatedMemory memory(kMiB);
  BlockPlayer player(memory, block_allocator_named("bfc"), kMiB);
  ReplayOptions options;
  options.paced = true;
  const std::int64_t begin = now_ns();
  replay(trace, facts_of(trace, {}), player, options);
  return now_ns() - begin;
}

TEST(Replay, PacedTakesAsLongAsTheTrace) {
  EXPECT_GE(paced_ns(4, 5'000'000), 15'000'000);
  EXPECT_LT(paced_ns(200, 1'000), 10'000'000'000) << "0.2 ms, and not a longest sleep for each";
}

// --- the ladder ---

/// A player of which each step can be what cures.
class SickPlayer : public Player {
 public:
  explicit SickPlayer(RecoveryStep cure) : cure_(cure) {}
  void prepare(std::uint32_t, std::uint32_t) override {}
  bool allocate(std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t) override {
    return well_;
  }
  void release(std::uint32_t, std::uint64_t) override {}
  void touch(std::uint32_t, std::uint64_t) override {}
  void wait_for_stream(std::uint32_t) override { climb(RecoveryStep::stream_wait); }
  void wait_for_device() override { climb(RecoveryStep::device_wait); }
  void trim() override { climb(RecoveryStep::trim); }
  void begin_anew() override { climb(RecoveryStep::destroy); }
  std::uint64_t limit_bytes() const override { return std::numeric_limits<std::uint64_t>::max(); }
  std::uint64_t reserved_bytes() const override { return 0; }

  std::vector<RecoveryStep> climbed;

 private:
  void climb(RecoveryStep step) {
    climbed.push_back(step);
    well_ = well_ || step == cure_;
  }
  RecoveryStep cure_;
  bool well_ = false;
};

TEST(RecoveryLadder, NamesTheRungThatCured) {
  for (const RecoveryStep cure : {RecoveryStep::stream_wait,
                                  RecoveryStep::device_wait,
                                  RecoveryStep::trim,
                                  RecoveryStep::destroy,
                                  RecoveryStep::none}) {
    const auto trace = pattern("checkerboard/blocks:4");
    SickPlayer player(cure);
    const Replay done = replay(*trace, facts_of(*trace, {}), player, {});
    ASSERT_TRUE(done.failure);
    EXPECT_EQ(done.failure->cured_by, name_of(cure));
    EXPECT_EQ(done.completed, cure < RecoveryStep::destroy) << name_of(cure);
    EXPECT_EQ(player.climbed.size(), std::min<std::size_t>(static_cast<std::size_t>(cure) + 1, 4));
  }
}

/// Each first attempt and each trim takes 2 ms, and only a trim cures.
class SlowPlayer : public SickPlayer {
 public:
  SlowPlayer() : SickPlayer(RecoveryStep::none) {}
  bool allocate(std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t) override {
    if (std::exchange(trimmed_, false)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return false;
  }
  void wait_for_stream(std::uint32_t) override {}
  void wait_for_device() override {}
  void trim() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    trimmed_ = true;
  }

 private:
  bool trimmed_ = false;
};

TEST(RecoveryLadder, IsPartOfTheTimeOfTheAllocation) {
  const auto trace = pattern("checkerboard/blocks:4");
  SlowPlayer player;
  const Replay done = replay(*trace, facts_of(*trace, {}), player, {});
  EXPECT_TRUE(done.completed);
  EXPECT_EQ(done.allocate_times.n(), done.allocations) << "one time for each, whatever it took";
  EXPECT_EQ(done.recoveries, done.allocations);
  // Two rungs that do not cure have an attempt each.
  EXPECT_GE(done.allocate_times.quantile_ns(0.5).value_or(0), 7.5e6);
  EXPECT_GE(done.calls_s, 7.5e-3 * static_cast<double>(done.allocations));
}

/// A device of which each allocation takes whole pages of 2 MiB, and that others use too.
class PagedPlayer : public SickPlayer {
 public:
  PagedPlayer(std::uint64_t limit, std::uint64_t others)
      : SickPlayer(RecoveryStep::none), limit_(limit), free_(limit - others) {}
  bool allocate(std::uint32_t, std::uint64_t bytes, std::uint32_t, std::uint64_t) override {
    const std::uint64_t takes = *granted_bytes(bytes);
    if (takes > free_) return false;
    free_ -= takes;
    return true;
  }
  void release(std::uint32_t, std::uint64_t bytes) override { free_ += *granted_bytes(bytes); }
  std::optional<std::uint64_t> granted_bytes(std::uint64_t bytes) const override {
    return (bytes + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB;
  }
  std::optional<std::uint64_t> free_bytes() override { return free_; }
  std::uint64_t limit_bytes() const override { return limit_; }

 private:
  std::uint64_t limit_, free_;
};

TEST(RecoveryLadder, RoundingIsNoFragmentation) {
  std::vector<TraceEvent> events;
  for (std::uint64_t id = 1; id <= 2500; ++id)
    events.push_back({static_cast<std::int64_t>(id), id, 4096, 0, 0, 0, 0, Op::alloc});
  TraceInMemory trace({}, events);
  PagedPlayer player(4096 * kMiB, 0);
  const Replay done = replay(trace, facts_of(trace, {}), player, {});
  ASSERT_TRUE(done.failure);
  EXPECT_EQ(done.failure->event, 2048u);
  EXPECT_EQ(done.failure->cured_by, "rounding");
  EXPECT_EQ(done.failure->then.granted_bytes, 4096 * kMiB);
  EXPECT_EQ(done.failure->device_free_bytes, 0u);
  EXPECT_THAT(player.climbed, testing::Not(testing::Contains(RecoveryStep::destroy)))
      << "what is live was not lost for it";
}

TEST(RecoveryLadder, WhatOthersHaveTakenIsNoFragmentation) {
  const auto trace = pattern("checkerboard/blocks:8/bytes:2097152");
  PagedPlayer player(16 * kMiB, 10 * kMiB);
  const Replay done = replay(*trace, facts_of(*trace, {}), player, {});
  ASSERT_TRUE(done.failure);
  EXPECT_EQ(done.failure->cured_by, "taken");
  EXPECT_EQ(done.failure->event, 3u);
}

TEST(RecoveryLadder, FragmentedIsToldFromExhausted) {
  // 4 of 8 MiB are free, in pieces: an empty allocator could.
  const auto board = pattern("checkerboard/blocks:8/request:2");
  const Replay fragmented = play(*board, "bfc", 8 * kMiB);
  ASSERT_TRUE(fragmented.failure);
  EXPECT_FALSE(fragmented.completed);
  EXPECT_EQ(fragmented.failure->cured_by, "destroy");
  EXPECT_EQ(fragmented.failure->event, 12u);
  EXPECT_EQ(fragmented.failure->bytes, 2 * kMiB);
  EXPECT_EQ(fragmented.failure->then.free_bytes, 4 * kMiB);
  // The last moment is that of the failure, and not of the empty allocator.
  EXPECT_EQ(fragmented.moments.back().free_bytes, 4 * kMiB);
  EXPECT_EQ(fragmented.moments.back().event, 11u);
  // And not even an empty one has more than there is.
  const auto one = pattern("thrash/bytes:9437184");
  const Replay exhausted = play(*one, "bfc", 8 * kMiB);
  ASSERT_TRUE(exhausted.failure);
  EXPECT_EQ(exhausted.failure->cured_by, "none");
  // Beside 4 MiB that are live 5 of 8 have no room, however they lie.
  const auto beside = pattern("checkerboard/blocks:8/request:5");
  const Replay full = play(*beside, "bfc", 8 * kMiB);
  ASSERT_TRUE(full.failure);
  EXPECT_EQ(full.failure->bytes, 5 * kMiB);
  EXPECT_EQ(full.failure->cured_by, "none");
}

// --- the smallest limit ---

SmallestLimit smallest(const std::string& name, std::string_view allocator) {
  const auto trace = pattern(name);
  return smallest_limit(script_of(*trace, 0), block_allocator_named(allocator));
}

TEST(SmallestLimit, IsWhatTheBlocksNeed) {
  EXPECT_EQ(smallest("checkerboard/blocks:64", "bfc").bytes, 64 * kMiB);
  EXPECT_EQ(smallest("checkerboard/blocks:64/bytes:1000", "bfc").bytes, 64 * 1024u);
  EXPECT_EQ(smallest("checkerboard/blocks:64", "caching").bytes, 64 * kMiB);
  // The free half is of no use to what is twice as large, but for its last block.
  EXPECT_EQ(smallest("checkerboard/blocks:64/request:2", "bfc").bytes, 65 * kMiB);
}

TEST(SmallestLimit, IsLookedForOneStepBelowThePeak) {
  Script script;
  for (const auto& [peak, least] : {std::pair(99, 0), {100, 0}, {199, 0}, {200, 100}, {399, 200}}) {
    script.peak_live_bytes = static_cast<std::uint64_t>(peak);
    EXPECT_EQ(least_limit(script, 100), static_cast<std::uint64_t>(least)) << peak;
  }
}

TEST(SmallestLimit, OneStepLessIsTooLittle) {
  for (const BlockAllocatorInfo& info : block_allocators()) {
    const auto trace = pattern("training/allocations:3000");
    const Script script = script_of(*trace, 0);
    const SmallestLimit found = smallest_limit(script, info);
    ASSERT_TRUE(found.bytes) << info.name;
    EXPECT_GE(*found.bytes, script.peak_live_bytes);
    EXPECT_TRUE(completes(script, info, *found.bytes)) << info.name;
    EXPECT_FALSE(completes(script, info, *found.bytes - kSimulatedStep)) << info.name;
    if (found.fails_again_at) {
      EXPECT_GT(*found.fails_again_at, *found.bytes);
      EXPECT_LE(*found.fails_again_at, 2 * *found.bytes);
      EXPECT_FALSE(completes(script, info, *found.fails_again_at)) << info.name;
    }
  }
}

/// Some dozen blocks of a few hundred bytes to a few KiB, given back in any order.
TraceInMemory random_trace(std::mt19937_64& random) {
  std::vector<TraceEvent> events;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> live;  // id, bytes
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (std::uint64_t id = 0; id < 60; ++id) {
    while (!live.empty() && below(100) < 45) {
      const std::size_t at = below(live.size());
      TraceEvent end;
      end.op = Op::free;
      end.id = live[at].first;
      end.bytes = live[at].second;
      events.push_back(end);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    TraceEvent begin;
    begin.op = Op::alloc;
    begin.id = id;
    begin.bytes = 256 * (1 + below(below(2) == 0 ? 4 : 24));
    events.push_back(begin);
    live.emplace_back(begin.id, begin.bytes);
  }
  return {TraceHead(), std::move(events), TraceFaults()};
}

TEST(SmallestLimit, LooksBelowWhereSomethingCompletes) {
  // From 100 to 119 and again from 200 on.
  const auto completes = [](std::uint64_t limit) {
    return (limit >= 100 && limit < 120) || limit >= 200;
  };
  const SmallestLimit found = smallest_limit(completes, 0, 1024, 1, 2048);
  EXPECT_EQ(found.bytes, 100u);
  ASSERT_TRUE(found.fails_again_at);
  EXPECT_GE(*found.fails_again_at, 190u);
  EXPECT_LT(*found.fails_again_at, 200u);
  // Where it completes from somewhere on, that is it.
  const auto from = [](std::uint64_t limit) { return limit >= 777; };
  EXPECT_EQ(smallest_limit(from, 0, 1 << 20, 1, 1 << 21).bytes, 777u);
  EXPECT_FALSE(smallest_limit(from, 0, 1 << 20, 1, 1 << 21).fails_again_at);
  EXPECT_EQ(smallest_limit(from, 776, 1 << 20, 1, 1 << 21).bytes, 777u);
}

/// Of random traces, how often a smaller limit completes than is told, by trying each.
TEST(SmallestLimit, OfRandomTracesIsTheLeastInNearlyAll) {
  std::mt19937_64 random(11);
  constexpr int kTraces = 300;
  int missed = 0, not_monotone = 0, missed_by_bisection = 0;
  for (int trace = 0; trace < kTraces; ++trace) {
    TraceInMemory made = random_trace(random);
    const Script script = script_of(made, 0);
    const BlockAllocatorInfo& info = block_allocator_named("bfc");
    const SmallestLimit found = smallest_limit(script, info);
    ASSERT_TRUE(found.bytes);
    bool less = false, gap = false;
    for (std::uint64_t limit = script.peak_live_bytes / 256 * 256; limit < 2 * *found.bytes;
         limit += 256) {
      const bool enough = completes(script, info, limit);
      less = less || (enough && limit < *found.bytes);
      gap = gap || (!enough && limit > *found.bytes);
    }
    missed += less;
    not_monotone += gap;
    std::uint64_t fails = 0, enough = kLargestLimit;
    while (enough - fails > 256) {
      const std::uint64_t middle = fails + (enough - fails) / 512 * 256;
      (completes(script, info, middle) ? enough : fails) = middle;
    }
    missed_by_bisection += enough > *found.bytes;
  }
  RecordProperty("missed", missed);
  RecordProperty("not_monotone", not_monotone);
  RecordProperty("missed_by_bisection", missed_by_bisection);
  EXPECT_LE(missed, kTraces / 100) << "of " << not_monotone << " that are not monotone";
  EXPECT_GT(not_monotone, 0) << "else nothing was tested";
  EXPECT_GT(missed_by_bisection, missed) << "bisection alone is not enough";
}

TEST(SmallestLimit, ATraceThatNeedsMoreThanTheLargestHasNone) {
  EXPECT_FALSE(smallest("thrash/bytes:68719476737", "bfc").bytes);
}

/// A model whose batch grows: what docs/allocation.md shows.
TEST(SmallestLimit, OfAGrowingBatch) {
  const auto over_peak = [](std::string_view allocator) {
    const auto trace = pattern("batches");
    const Script script = script_of(*trace, 0);
    return static_cast<double>(*smallest_limit(script, block_allocator_named(allocator)).bytes) /
           static_cast<double>(script.peak_live_bytes);
  };
  EXPECT_NEAR(over_peak("caching"), 1.000, 0.0005);
  EXPECT_NEAR(over_peak("bfc"), 1.000, 0.0005);
  EXPECT_NEAR(over_peak("bfc_vmm"), 1.000, 0.0005);
  EXPECT_GT(over_peak("bfc_growth"), 1.01);
}

// --- patterns ---

TEST(Patterns, SayWhatThereIs) {
  EXPECT_THAT(
      [] { pattern("chess"); },
      testing::ThrowsMessage<UsageError>(testing::HasSubstr("there are checkerboard, comb")));
  EXPECT_THAT([] { pattern("comb/teeth:7"); },
              testing::ThrowsMessage<UsageError>(
                  "comb has no parameter 'teeth': it has pairs, bytes, pin"));
  EXPECT_THAT([] { pattern("comb/pairs:0"); },
              testing::ThrowsMessage<UsageError>(
                  "pairs of comb is a number from 1 to 10000000, and not '0'"));
  EXPECT_NO_THROW(pattern("comb/pairs:1/bytes:1/pin:1"));
}

TEST(Patterns, AskForWhatTheirUsualValuesSay) {
  constexpr std::uint64_t kKiB = 1024;
  const struct {
    const char* name;
    std::uint64_t allocations, kib;  // of all of them
  } usual[] = {{"checkerboard", 64, 64 * kKiB},
               {"comb", 128, kKiB * 64 * 4 + 16},
               {"batches", 1700, kKiB * 250 * 408},
               {"pins", 300, kKiB * 100 * 277 / 2},
               {"best_fit_attack", 248, 12462 * kKiB},
               {"thrash", 1000, 64000 * kKiB}};
  for (const auto& [name, allocations, kib] : usual) {
    const auto trace = pattern(name);
    std::uint64_t count = 0, bytes = 0;
    for (TraceEvent event; trace->next(event);) {
      if (event.op != Op::alloc) continue;
      ++count;
      bytes += event.bytes;
    }
    EXPECT_EQ(count, allocations) << name;
    EXPECT_EQ(bytes, kib * kKiB) << name;
  }
}

/// Allocators that cut blocks anywhere need what the attack says.
TEST(Patterns, TheAttackOnBestFitNeedsWhatItSays) {
  constexpr std::uint64_t kLargest = 40;
  const auto trace = pattern("best_fit_attack/largest:40/bytes:1");
  // Best fit in units of a byte, without end.
  std::map<std::uint64_t, std::uint64_t> free = {{0, 1'000'000}};
  std::map<std::uint64_t, std::uint64_t> places;
  std::uint64_t end = 0, live = 0;
  for (TraceEvent event; trace->next(event);) {
    if (event.op == Op::alloc) {
      auto best = free.end();
      for (auto at = free.begin(); at != free.end(); ++at) {
        if (at->second >= event.bytes && (best == free.end() || at->second < best->second))
          best = at;
      }
      const auto [address, size] = *best;
      free.erase(best);
      if (size > event.bytes) free[address + event.bytes] = size - event.bytes;
      places[event.id] = address;
      live += event.bytes;
    } else {
      std::uint64_t address = places.at(event.id), size = event.bytes;
      live -= size;
      if (const auto next = free.find(address + size); next != free.end()) {
        size += next->second;
        free.erase(next);
      }
      if (auto before = free.lower_bound(address);
          before != free.begin() &&
          std::prev(before)->first + std::prev(before)->second == address) {
        before = std::prev(before);
        address = before->first;
        size += before->second;
      }
      free[address] = size;
    }
    end = std::max(end, free.rbegin()->first);
  }
  EXPECT_EQ(live, kLargest - 2);
  EXPECT_EQ(free.rbegin()->first, (kLargest - 2) * (kLargest + 3) / 2);
}

TEST(Patterns, TrainingIsAsTheRecordedJob) {
  const auto trace = pattern("training/allocations:50000", 5);
  std::vector<double> sizes;
  std::map<std::uint64_t, std::uint64_t> begins;
  std::vector<double> lifetimes;
  std::uint64_t number = 0, other = 0, steps = 0;
  std::int64_t last = 0;
  for (TraceEvent event; trace->next(event); ++number) {
    last = event.t_ns;
    if (event.op == Op::step) ++steps;
    if (event.op == Op::alloc) {
      sizes.push_back(static_cast<double>(event.bytes));
      begins[event.id] = number;
    }
    if (event.op == Op::free) {
      lifetimes.push_back(static_cast<double>(number - begins.at(event.id)));
      other += event.thread;
    }
  }
  const auto quantile = [](std::vector<double>& values, double p) {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1))];
  };
  EXPECT_EQ(steps, 5u);
  ASSERT_EQ(lifetimes.size(), 50000u);
  EXPECT_NEAR(std::log2(quantile(sizes, 0.1)), 10, 0.5);
  EXPECT_NEAR(std::log2(quantile(sizes, 0.5)), 19, 0.3);
  EXPECT_NEAR(quantile(sizes, 0.9) / kMiB, 14, 1);
  EXPECT_NEAR(quantile(sizes, 0.99) / kMiB, 24, 2);
  EXPECT_LE(sizes.back() / kMiB, 94.001);
  const auto small = std::ranges::count_if(sizes, [](double size) { return size <= kMiB; });
  EXPECT_NEAR(static_cast<double>(small) / 50000, 0.59, 0.01);
  EXPECT_NEAR(quantile(lifetimes, 0.5), 12, 2);
  EXPECT_NEAR(quantile(lifetimes, 0.9), 3644, 400);
  EXPECT_NEAR(static_cast<double>(other) / 50000, 0.12, 0.01);
  EXPECT_NEAR(static_cast<double>(last) * 1e-9, 50000 / 7800.0, 0.5);
}

TEST(TimeCounts, QuantilesAreRightWithinThreePercent) {
  TimeCounts counts;
  for (int i = 1; i <= 100'000; ++i) counts.add(i);
  EXPECT_NEAR(*counts.quantile_ns(0.5), 50'000, 1'600);
  EXPECT_NEAR(*counts.quantile_ns(0.99), 99'000, 3'100);
  EXPECT_EQ(counts.longest_ns(), 100'000u);
  TimeCounts none;
  EXPECT_FALSE(none.quantile_ns(0.5));
  TimeCounts extreme;
  extreme.add(-5);
  extreme.add(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(extreme.n(), 2u);
}

}  // namespace
}  // namespace launchgap::allocation
