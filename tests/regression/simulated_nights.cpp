#include "tests/regression/simulated_nights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <boost/math/distributions/complement.hpp>
#include <boost/math/distributions/poisson.hpp>

#include "harness/regression/selftest.h"
#include "tests/random.h"

namespace launchgap::regression {
namespace {

constexpr int kChangeAt = 60;
constexpr double kBetweenNights = 0.01, kBetweenRuns = 0.005, kWithinRun = 0.01;
constexpr int kProcesses = 3, kSamplesOfEach = 15;

using Levels = std::function<std::vector<double>(Random&)>;

/// A series made night after night: `next` keeps what it must know of the nights before.
template <class Next>
Levels series(Next next) {
  return [next](Random& random) {
    Next own = next;
    std::vector<double> levels;
    for (int night = 0; night < kSimulatedNights; ++night) levels.push_back(own(night, random));
    return levels;
  };
}

Levels independent() {
  return series([](int, Random& random) { return kBetweenNights * normal(random); });
}

Levels heavy_tailed() {
  return series([](int, Random& random) {
    return kBetweenNights * std::student_t_distribution<double>(3)(random);
  });
}

/// Those of `levels`, and `added(night, random)`.
template <class Added>
Levels with(const Levels& levels, Added added) {
  return [=](Random& random) {
    std::vector<double> sum = levels(random);
    Added own = added;
    for (int night = 0; night < kSimulatedNights; ++night)
      sum[static_cast<std::size_t>(night)] += own(night, random);
    return sum;
  };
}

double bad(Random& random) {
  return std::log(1.05 + 0.12 * uniform(random));
}

Levels bad_nights() {
  return with(independent(),
              [](int, Random& random) { return uniform(random) < 0.04 ? bad(random) : 0; });
}

Levels weekly_cycle() {
  return with(independent(),
              [](int night, Random&) { return 0.02 * std::sin(2 * std::numbers::pi * night / 7); });
}

Levels weekly_bad_night() {
  return with(independent(),
              [](int night, Random&) { return night % 7 == 3 ? std::log(1.08) : 0; });
}

Levels changing_variance() {
  return series([calm = true](int night, Random& random) mutable {
    if (uniform(random) < (night == 0 ? 0.5 : 0.05)) calm = !calm;
    return (calm ? 0.005 : 0.02) * normal(random);
  });
}

Levels variance_step() {
  return series([](int night, Random& random) {
    return (night < kChangeAt ? 1 : 3) * kBetweenNights * normal(random);
  });
}

/// The level lies anywhere between two values that there are.
Levels anywhere_between(double step) {
  return [step](Random& random) {
    const double offset = std::log1p(step * uniform(random));
    return with(independent(), [offset](int, Random&) { return offset; })(random);
  };
}

Levels autocorrelated(double with_night_before, double deviation) {
  return series([=, level = 0.0](int night, Random& random) mutable {
    const double fresh = deviation * normal(random);
    level = night == 0 ? fresh
                       : with_night_before * level +
                             std::sqrt(1 - with_night_before * with_night_before) * fresh;
    return level;
  });
}

Levels persistent_levels() {
  return series([slow = false](int night, Random& random) mutable {
    if (uniform(random) < (night == 0 ? 0.5 : 0.15)) slow = !slow;
    return kBetweenNights * normal(random) + (slow ? std::log(1.06) : 0);
  });
}

Levels bad_stretches() {
  return series([left = 0, slower = 0.0](int, Random& random) mutable {
    if (left == 0 && uniform(random) < 0.006) {
      left = uniform(random) < 0.5 ? 3 : 4;
      slower = bad(random);
    }
    const double own = left > 0 ? slower : 0;
    left = std::max(0, left - 1);
    return kBetweenNights * normal(random) + own;
  });
}

/// By `factor`, on nights from `first` to `last`.
Levels changed(const Levels& levels,
               double factor,
               int first = kChangeAt,
               int last = kSimulatedNights) {
  return with(levels, [=](int night, Random&) {
    return night >= first && night <= last ? std::log(factor) : 0;
  });
}

Levels drifting(double each_night, int first) {
  return with(independent(), [=](int night, Random&) {
    return std::log1p(each_night) * std::max(0, night - first);
  });
}

std::vector<NightKind> without_change() {
  constexpr double kFew = 0.001;
  std::vector<NightKind> kinds = {
      {"independent", independent(), 0, kFew},
      {"Student's t, 3 degrees of freedom", heavy_tailed(), 0, kFew},
      {"4 % bad nights, +5 to +17 %", bad_nights(), 0, kFew},
      {"weekly cycle of ±2 %", weekly_cycle(), 0, kFew},
      {"one night a week +8 %", weekly_bad_night(), 0, kFew},
      {"changing variance: 0.5 and 2 %, 5 % a night change", changing_variance(), 0, kFew},
      {"changing variance: three times from night 60 on", variance_step(), 0, kFew},
  };
  for (const int percent : {1, 4, 10}) {
    const double step = percent / 100.0;
    const std::string name = "steps of " + std::to_string(percent) + " %";
    kinds.push_back({name, independent(), step, kFew});
    kinds.push_back({name + ", the level between two", anywhere_between(step), step, kFew});
  }
  kinds.push_back({"autocorrelated, 0.7, 2 %", autocorrelated(0.7, 0.02), 0, 0.004});
  kinds.push_back({"autocorrelated, 0.9, 2 %", autocorrelated(0.9, 0.02), 0, 0.04});
  kinds.push_back({"two levels, 6 % apart, 15 % a night change", persistent_levels(), 0, 0.02});
  // Twice what the rule of three in a row alone had of these series: 0.85 %.
  kinds.push_back({"stretches of 3 or 4 bad nights, +5 to +17 %", bad_stretches(), 0, 0.017});
  return kinds;
}

std::vector<NightKind> with_change() {
  constexpr int kAt = kChangeAt, kLast = kSimulatedNights - 1;
  const auto kind = [](std::string name, Levels levels, std::vector<Within> found) {
    return NightKind{std::move(name), std::move(levels), 0, -1, std::move(found)};
  };
  const auto soon = [](double third, double fifth) {
    return std::vector<Within>{{"by the third night", kAt, kAt + 2, third},
                               {"by the fifth", kAt, kAt + 4, fifth}};
  };
  const auto lost = [](int at, double fifth) {
    return std::vector<Within>{{"by the fifth night", at, at + 4, fifth}};
  };
  return {
      kind("+3 %", changed(independent(), 1.03), soon(0, 0)),
      kind("+5 %", changed(independent(), 1.05), soon(0.75, 0.88)),
      kind("+10 %", changed(independent(), 1.10), soon(0.99, 0)),
      kind("+10 %, where 4 % of the nights are bad", changed(bad_nights(), 1.10), soon(0.90, 0.95)),
      kind("three times, where one night a week is +8 %",
           changed(weekly_bad_night(), 3),
           soon(0.99, 0)),
      kind("three times, where there are two levels",
           changed(persistent_levels(), 3),
           soon(0.99, 0)),
      kind("+10 % on two nights of three",
           with(independent(),
                [](int night, Random&) {
                  return night >= kAt && night % 3 != 2 ? std::log(1.10) : 0;
                }),
           {{"by the ninth night", kAt, kAt + 8, 0.95}, {"in the last week", kLast - 6, kLast}}),
      kind("+10 % on one night of three",
           with(independent(),
                [](int night, Random&) {
                  return night >= kAt && night % 3 == 2 ? std::log(1.10) : 0;
                }),
           {{"by the ninth night", kAt, kAt + 8}, {"in the last week", kLast - 6, kLast}}),
      kind("drift of 0.05 % a night from the first on",
           drifting(0.0005, 0),
           {{"by the last night", 0, kLast}}),
      kind("drift of 0.2 % a night",
           drifting(0.002, kAt),
           {{"by the last, +19 %", kAt, kLast, 0.8}}),
      kind("drift of 0.2 % a night from the first on",
           drifting(0.002, 0),
           {{"by +20 %", 0, 91, 0.8}, {"in the last week", kLast - 6, kLast}}),
      kind("drift of 0.5 % a night", drifting(0.005, kAt), {{"by +15 %", kAt, kAt + 28, 0.95}}),
      kind("drift of 0.5 % a night from the first on",
           drifting(0.005, 0),
           {{"by +15 %", 0, 28, 0.95}, {"in the last week", kLast - 6, kLast}}),
      kind("drift of 1 % a night", drifting(0.01, kAt), {{"by +15 %", kAt, kAt + 14, 0.95}}),
      kind("drift of 1 % a night from the first on",
           drifting(0.01, 0),
           {{"by night 30, +35 %", 0, 30, 0.95}, {"in the last week", kLast - 6, kLast}}),
      kind("-10 % for ten nights, and lost",
           changed(independent(), 0.90, kAt, kAt + 9),
           lost(kAt + 10, 0.95)),
      kind("-5 % for twenty nights, and lost",
           changed(independent(), 0.95, kAt, kAt + 19),
           lost(kAt + 20, 0.60)),
      kind("-10 % for 35 nights, and lost",
           changed(independent(), 0.90, kAt, kAt + 34),
           lost(kAt + 35, 0.95)),
  };
}

}  // namespace

const std::vector<NightKind>& kinds_without_change() {
  static const std::vector<NightKind> kKinds = without_change();
  return kKinds;
}

const std::vector<NightKind>& kinds_with_change() {
  static const std::vector<NightKind> kKinds = with_change();
  return kKinds;
}

std::vector<rules::Night> simulated_nights(const NightKind& kind, Random& random) {
  std::vector<rules::Night> nights;
  for (const double level : kind.levels(random)) {
    std::array<double, kProcesses> runs{};
    for (double& run : runs) {
      std::array<double, kSamplesOfEach> samples{};
      const double own = kBetweenRuns * normal(random);
      for (double& sample : samples) sample = own + kWithinRun * normal(random);
      std::ranges::nth_element(samples, samples.begin() + kSamplesOfEach / 2);
      run = samples[kSamplesOfEach / 2];
    }
    std::ranges::sort(runs);
    rules::Night night;
    night.begin_s = static_cast<std::int64_t>(nights.size()) * kDayS;
    night.value = std::exp(level + runs[kProcesses / 2]);
    if (kind.step > 0) night.value = std::max(1.0, std::round(night.value / kind.step)) * kind.step;
    nights.push_back(night);
  }
  return nights;
}

std::vector<Verdict> verdicts_of(std::vector<rules::Night> nights) {
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < nights.size(); ++i) {
    const rules::NightJudgement judgement =
        rules::judge_night(std::span(nights).first(i), nights[i], Direction::lower_is_better);
    rules::remember(judgement, nights[i]);
    verdicts.push_back(judgement.verdict);
  }
  return verdicts;
}

bool Prediction::holds(bool within_two) const {
  if (within_two) return counted >= predicted / 2 && counted <= 2 * predicted;
  if (predicted == 0) return counted == 0;
  constexpr double kTailOf99 = 0.005;
  const boost::math::poisson expected(predicted);
  const double at_most = boost::math::cdf(expected, counted);
  const double at_least =
      counted == 0 ? 1 : boost::math::cdf(boost::math::complement(expected, counted - 1));
  return at_most >= kTailOf99 && at_least >= kTailOf99;
}

Prediction predicted_and_counted(const NightKind& kind, int metrics, std::uint64_t seed) {
  constexpr std::size_t kNights = 100;
  Random random(seed);
  Prediction sums;
  for (int metric = 0; metric < metrics; ++metric) {
    std::vector<rules::Night> nights = simulated_nights(kind, random);
    nights.resize(kNights);
    std::vector<bool> alarms;
    for (const Verdict verdict : verdicts_of(nights)) alarms.push_back(verdict == Verdict::slower);
    sums.counted += alarms_that_begin(alarms);
    const auto found =
        resample_nights(nights, Direction::lower_is_better, 0, static_cast<std::uint64_t>(metric));
    sums.predicted += found->power.false_alarm_rate * (kNights - rules::kFewestNights);
  }
  return sums;
}

Characteristics characteristics_of(const NightKind& kind, int series, std::uint64_t seed) {
  Random random(seed);
  Characteristics sums;
  sums.found.resize(kind.found.size());
  double judged = 0;
  for (int i = 0; i < series; ++i) {
    const std::vector<Verdict> verdicts = verdicts_of(simulated_nights(kind, random));
    const auto count = [&](Verdict verdict) {
      return static_cast<double>(std::ranges::count(verdicts, verdict));
    };
    judged += static_cast<double>(verdicts.size()) - count(Verdict::no_baseline);
    sums.slower += count(Verdict::slower);
    sums.suspect += count(Verdict::suspect);
    sums.unstable += count(Verdict::unstable);
    if (count(Verdict::slower) > 0) ++sums.ever;
    for (std::size_t k = 0; k < kind.found.size(); ++k) {
      const auto first = verdicts.begin() + kind.found[k].first;
      const auto last = verdicts.begin() + kind.found[k].last + 1;
      if (std::find(first, last, Verdict::slower) != last) ++sums.found[k];
    }
  }
  for (double* const sum : {&sums.slower, &sums.suspect, &sums.unstable}) *sum /= judged;
  sums.ever /= series;
  for (double& found : sums.found) found /= series;
  return sums;
}

}  // namespace launchgap::regression
