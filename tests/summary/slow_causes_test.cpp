#include "harness/summary/slow_causes.h"

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "harness/measure/thread_watch.h"
#include "tests/device/a_device.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

/// What happens in one sample: what the thread's counters gain, and how much longer it takes.
struct Happens {
  double extra_ns = 0;
  ThreadCounters gains = {.cpu = 0};
  std::int64_t pause_ns = 0;  // before it
};

constexpr double kUsualNs = 10'000, kSpreadNs = 400;

/// A session of one run, whose samples ThreadWatch looked at as it looks at real ones.
class Watched {
 public:
  static constexpr int kBlocks = 5, kSamples = 400;

  explicit Watched(std::uint64_t seed) : random_(seed) {
    session_.devices = {a_device("GPU-1", "Some GPU")};
  }

  /// `happens(i)` of the i-th sample of the run.
  void take(const std::function<Happens(int)>& happens) {
    Block block({"roundtrip_ns"}, kSamples);
    ThreadCounters counters{.cpu = 0};
    std::int64_t now = 1'000'000;
    ThreadWatch watch(
        {"roundtrip_ns"}, [&] { return counters; }, [&] { return now; });
    for (int index = 0; index < kBlocks; ++index) {
      block.restart(now);
      watch.begin_block(block);
      for (int i = 0; i < kSamples; ++i) {
        const Happens own = happens(index * kSamples + i);
        now += 40 + own.pause_ns;
        const double ns =
            kUsualNs + std::normal_distribution<>(0, kSpreadNs)(random_) + own.extra_ns;
        counters.voluntary += own.gains.voluntary;
        counters.involuntary += own.gains.involuntary;
        counters.faults += own.gains.faults;
        counters.cpu += own.gains.cpu;
        block.keep(now, ns);
        now += static_cast<std::int64_t>(ns);
        watch.look(block);
      }
      watch.end_block(block);
      add(index, block, watch);
    }
  }
  SessionData& session() { return session_; }
  const std::vector<double>& values() const {
    return session_.cases.begin()->second.samples.at("roundtrip_ns").at(0);
  }
  std::map<std::string, std::uint64_t> causes() const {
    std::map<std::string, std::uint64_t> found;
    for (const SlowPart& part : slow_parts(session_)) {
      if (part.samples > 0) found[std::string(name_of(part.cause))] += part.samples;
    }
    return found;
  }

 private:
  static constexpr const char* kCase = "launch/null/api:driver/mode:idle";

  void add(int index, const Block& block, const ThreadWatch& watch) {
    CaseData& data =
        session_.cases[{"GPU-1", "plain", ProcessConfig("launch"), CaseName::parse(kCase)}];
    const auto values = block.values(0);
    auto& all = data.samples["roundtrip_ns"][0];
    all.insert(all.end(), values.begin(), values.end());
    BlockInfo& info = data.blocks.emplace_back();
    info.block = index;
    info.counts["roundtrip_ns"] = values.size();
    data.metric_order = {"roundtrip_ns"};
    session_.thread_events.push_back({{"GPU-1", "plain", ProcessConfig("launch"), 0},
                                      {kCase, index, watch.slow(), watch.usual()}});
  }

  SessionData session_;
  std::mt19937_64 random_;
};

/// A cause that the system shows, with what it leaves behind.
struct Injected {
  const char* cause;
  Happens sign;
};
const Injected kInjected[] = {
    {"host-pause", {.gains = {.involuntary = 1, .cpu = 0}}},
    {"migration", {.gains = {.involuntary = 1, .cpu = 1}}},
    {"page-fault", {.gains = {.faults = 3, .cpu = 0}}},
    {"blocked", {.gains = {.voluntary = 1, .cpu = 0}}},
    {"after-pause", {.gains = {.voluntary = 1, .cpu = 0}, .pause_ns = 300'000}},
};

/// Of 0.5 to 50 times the usual spread.
double drawn_delay(std::mt19937_64& random) {
  return kSpreadNs *
         std::exp(std::uniform_real_distribution<>(std::log(0.5), std::log(50))(random));
}

struct Score {
  std::uint64_t right = 0, blamed = 0, caused = 0;
  double precision() const { return static_cast<double>(right) / static_cast<double>(blamed); }
  double recall() const { return static_cast<double>(right) / static_cast<double>(caused); }
};

/// How often each of `causes` is named, and named rightly, where they happen in every hundredth
/// sample each. Only slow samples have a cause. A sample that two happened to may have either.
std::map<std::string, Score> scores_of(const std::vector<const Injected*>& causes,
                                       int sessions,
                                       bool unexplained_too = false) {
  std::map<std::string, Score> scores;
  for (int session = 0; session < sessions; ++session) {
    std::mt19937_64 random(static_cast<std::uint64_t>(session) + 1);
    std::map<int, std::set<std::string>> happened;
    Watched made(static_cast<std::uint64_t>(session) + 1000);
    made.take([&](int i) {
      Happens all;
      for (const Injected* const injected : causes) {
        if (std::bernoulli_distribution(0.01)(random)) {
          happened[i].insert(injected->cause);
          all.extra_ns += drawn_delay(random);
          all.gains.voluntary += injected->sign.gains.voluntary;
          all.gains.involuntary += injected->sign.gains.involuntary;
          all.gains.faults += injected->sign.gains.faults;
          all.gains.cpu += injected->sign.gains.cpu;
          all.pause_ns += injected->sign.pause_ns;
        }
      }
      if (unexplained_too && std::bernoulli_distribution(0.01)(random)) {
        happened[i].insert("unexplained");
        all.extra_ns += drawn_delay(random);
      }
      return all;
    });
    // By sample: the whole is taken apart once more with each slow sample's own cause.
    const std::vector<double>& values = made.values();
    const double limit = *slow_limit(values);
    std::vector<const WatchedSample*> slow;
    std::vector<std::pair<int, const WatchedSample*>> places;
    ThreadEvents usual;
    for (const ThreadEventsInfo& info : made.session().thread_events) {
      usual.add(info.record.usual);
      for (const WatchedSample& watched : info.record.slow) {
        const int i = info.record.block * Watched::kSamples + static_cast<int>(watched.sample);
        if (values[static_cast<std::size_t>(i)] > limit) {
          slow.push_back(&watched);
          places.emplace_back(i, &watched);
        } else {
          usual.count(watched.events);
        }
      }
    }
    const EventRule rule(slow, usual);
    for (const auto& [i, watched] : places) {
      const std::string named(
          name_of(rule.cause_of(*watched, values[static_cast<std::size_t>(i)] - kUsualNs)));
      const std::set<std::string>& own = happened[i];
      const bool right = own.contains(named);
      ++scores[named].blamed;
      scores[named].right += right;
      for (const std::string& cause : own) {
        if (own.size() > 1 && right && cause != named) continue;
        ++scores[cause].caused;
      }
    }
  }
  return scores;
}

TEST(SlowCauses, EachIsFoundAlone) {
  for (const Injected& injected : kInjected) {
    const auto scores = scores_of({&injected}, 20);
    SCOPED_TRACE(injected.cause);
    ASSERT_TRUE(scores.contains(injected.cause));
    EXPECT_GE(scores.at(injected.cause).precision(), 0.95);
    EXPECT_GE(scores.at(injected.cause).recall(), 0.95);
    EXPECT_GT(scores.at(injected.cause).caused, 100u);
  }
}

TEST(SlowCauses, EachIsFoundBesideEachOther) {
  for (const Injected& one : kInjected) {
    for (const Injected& other : kInjected) {
      if (&one >= &other) continue;
      const auto scores = scores_of({&one, &other}, 10);
      for (const Injected* const own : {&one, &other}) {
        SCOPED_TRACE(std::string(one.cause) + " and " + other.cause + ": " + own->cause);
        ASSERT_TRUE(scores.contains(own->cause));
        EXPECT_GE(scores.at(own->cause).precision(), 0.95);
        EXPECT_GE(scores.at(own->cause).recall(), 0.95);
      }
    }
  }
}

// A delay that leaves no sign, alone and beside each cause.
TEST(SlowCauses, WhatIsNotKnownStaysUnexplained) {
  const auto alone = scores_of({}, 20, true);
  EXPECT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone.at("unexplained").recall(), 1);
  for (const Injected& injected : kInjected) {
    const auto scores = scores_of({&injected}, 10, true);
    SCOPED_TRACE(injected.cause);
    EXPECT_GE(scores.at("unexplained").recall(), 0.95);
    EXPECT_GE(scores.at(injected.cause).precision(), 0.95);
  }
}

TEST(SlowCauses, QuietRunsHaveNone) {
  for (std::uint64_t session = 0; session < 100; ++session) {
    Watched made(session);
    made.take([](int) { return Happens(); });
    EXPECT_THAT(made.causes(), IsEmpty());
  }
}

// Every counter moves, rarely or often, and makes nothing slower: neither alone nor beside delays
// of which nothing is known. One in twenty of these may be blamed on what happened by chance.
TEST(SlowCauses, DecoysAreNotBlamed) {
  for (const double rate : {0.0005, 0.002, 0.01, 0.1, 0.5, 0.95, 1.0}) {
    for (const Injected& decoy : kInjected) {
      std::uint64_t delays = 0, blamed = 0;
      for (std::uint64_t session = 0; session < 20; ++session) {
        std::mt19937_64 random(session + 1);
        const auto happens = [&](bool delayed) {
          Happens own;
          if (std::bernoulli_distribution(rate)(random)) own = decoy.sign;
          if (delayed && std::bernoulli_distribution(0.01)(random)) own.extra_ns = 20 * kSpreadNs;
          return own;
        };
        Watched still(session);
        still.take([&](int) { return happens(false); });
        EXPECT_THAT(still.causes(), IsEmpty());
        Watched delayed(session);
        delayed.take([&](int) { return happens(true); });
        for (const auto& [cause, samples] : delayed.causes()) {
          delays += samples;
          if (cause != "unexplained") blamed += samples;
        }
      }
      EXPECT_LE(static_cast<double>(blamed), 0.05 * static_cast<double>(delays))
          << decoy.cause << " at " << rate;
    }
  }
}

// --- blocks ---

TEST(SlowCauses, ABlockIsBlamedOnWhatHeldTheClocks) {
  const BlockTelemetry usual = {{"sm_clock_mhz", 1700}, {"held_by_sw_thermal_ns", 0}};
  const std::vector<BlockTelemetry> others(4, usual);
  const auto cause = [&](const BlockTelemetry& changes) {
    BlockTelemetry slow = usual;
    for (const auto& [key, value] : changes) slow[key] = value;
    return name_of(cause_of_block(slow, others));
  };
  EXPECT_EQ(cause({}), "unexplained");
  EXPECT_EQ(cause({{"held_by_sw_thermal_ns", 5e8}, {"sm_clock_mhz", 1200}}), "heat");
  EXPECT_EQ(cause({{"held_by_power_cap_ns", 5e8}, {"sm_clock_mhz", 1200}}), "clocks");
  EXPECT_EQ(cause({{"sm_clock_mhz", 1200}}), "clocks");
  EXPECT_EQ(cause({{"held_by_power_cap_ns", 5e7}}), "unexplained") << "a twentieth of the time";
  EXPECT_EQ(cause({{"other_processes", 1}}), "neighbour");
  EXPECT_EQ(cause({{"stolen_ms", 300}}), "neighbour");
  EXPECT_EQ(cause({{"sibling_busy_ms", 300}}), "sibling");
  EXPECT_EQ(cause({{"sibling_busy_ms", 50}}), "unexplained");
  EXPECT_EQ(cause({{"deep_idle_us", 3e5}}), "deep-idle");
  const std::vector<BlockTelemetry> held(4, {{"held_by_power_cap_ns", 6e8}});
  EXPECT_EQ(name_of(cause_of_block({{"held_by_power_cap_ns", 9e8}}, held)), "unexplained")
      << "as in the blocks that are not slow";
}

TEST(SlowCauses, ABlockIsBlamedOnTheCpusClockOnlyBelowAllOthers) {
  const auto cause = [](double mhz, std::initializer_list<double> usual) {
    std::vector<BlockTelemetry> others;
    for (const double one : usual) others.push_back({{"cpu_mhz", one}});
    return name_of(cause_of_block({{"cpu_mhz", mhz}}, others));
  };
  EXPECT_EQ(cause(2400, {3400, 3390, 3410}), "clocks");
  EXPECT_EQ(cause(3300, {3400, 3390, 3410}), "unexplained");
  EXPECT_EQ(cause(2400, {3400, 2300, 3410}), "unexplained") << "it differs from block to block";
  EXPECT_EQ(cause(2400, {}), "unexplained");
}

TEST(SlowCauses, WorkOfTheCoresOtherThreadThatIsAlwaysThereExplainsNothing) {
  const std::vector<BlockTelemetry> busy(4, {{"sibling_busy_ms", 600}, {"deep_idle_us", 4e5}});
  EXPECT_EQ(name_of(cause_of_block({{"sibling_busy_ms", 900}, {"deep_idle_us", 6e5}}, busy)),
            "unexplained");
}

// A block of lower clocks, in which the thread was taken off its CPU as well.
TEST(SlowCauses, ASlowBlockKeepsTheCausesOfItsOwnSlowSamples) {
  Watched made(3);
  made.take([](int i) {
    Happens own;
    if (i / Watched::kSamples == 2) own.extra_ns = 0.15 * kUsualNs;
    if (i % 100 == 50) own.extra_ns += 5e6, own.gains.involuntary = 1;
    return own;
  });
  EXPECT_THAT(made.causes(),
              ElementsAre(Pair("host-pause", 20u),
                          Pair("unexplained", static_cast<std::uint64_t>(Watched::kSamples))));
}

TEST(SlowCauses, AllSamplesOfASlowBlockHaveItsCause) {
  Watched made(3);
  made.take(
      [](int i) { return Happens{.extra_ns = i / Watched::kSamples == 2 ? 0.4 * kUsualNs : 0}; });
  const auto clock = [&](int block, double mhz) {
    made.session().telemetry.push_back({{"launch/null/api:driver/mode:idle",
                                         block,
                                         (block + 2) * std::int64_t{1'000'000'000},
                                         {{"sm_clock_mhz", mhz}}},
                                        {"GPU-1", "plain", ProcessConfig("launch"), 0}});
  };
  EXPECT_THAT(made.causes(),
              ElementsAre(Pair("unexplained", static_cast<std::uint64_t>(Watched::kSamples))));
  for (int block = -1; block < Watched::kBlocks; ++block) clock(block, block == 2 ? 1000 : 1700);
  EXPECT_THAT(made.causes(),
              ElementsAre(Pair("clocks", static_cast<std::uint64_t>(Watched::kSamples))));
}

TEST(SlowCauses, TheTableAlwaysHasWhatIsUnexplained) {
  Watched made(3);
  made.take([](int i) {
    Happens own;
    if (i % 100 == 50) own = {50'000, {.faults = 2, .cpu = 0}, 0};
    return own;
  });
  const auto lines = lines_of(table_named("slow_causes.csv"), made.session());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], Contains("page-fault"));
  EXPECT_THAT(lines[1], Contains("unexplained"));
}

// A fault of memory takes microseconds, and not the 20 ms that this sample took.
TEST(SlowCauses, AFaultExplainsNoMoreThanItCanTake) {
  Watched made(3);
  made.take([](int i) {
    Happens own;
    if (i % 100 == 50) own = {20e6, {.faults = 2, .cpu = 0}, 0};
    return own;
  });
  EXPECT_THAT(made.causes(), ElementsAre(Pair("unexplained", 20u)));
}

}  // namespace
}  // namespace launchgap
