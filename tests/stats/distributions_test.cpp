#include "harness/stats/distributions.h"

#include <gtest/gtest.h>

namespace launchgap::stats {
namespace {

// What scipy.stats says, by the call in each line.
TEST(Distributions, ChancesAndQuantilesAreThoseOfAnother) {
  constexpr double kNear = 1e-12;
  EXPECT_NEAR(binomial_at_most(10, 0.3, 3), 0.6496107184, kNear);          // binom.cdf(3, 10, 0.3)
  EXPECT_NEAR(binomial_at_least(10, 0.3, 4), 0.3503892816, kNear);         // binom.sf(3, 10, 0.3)
  EXPECT_NEAR(student_t(7, 0.025), 2.3646242515927844, kNear);             // t.isf(0.025, 7)
  EXPECT_NEAR(student_t_beyond(7, 2.5), 0.020496109292876437, kNear);      // t.sf(2.5, 7)
  EXPECT_NEAR(chi_squared_density(4, 3), 0.1673476201113224, kNear);       // chi2.pdf(3, 4)
  EXPECT_NEAR(chi_squared_quantile(4, 0.025), 0.4844185570879299, kNear);  // chi2.ppf(0.025, 4)
  EXPECT_NEAR(chi_squared_upper(4, 0.025), 11.143286781877796, kNear);     // chi2.isf(0.025, 4)
  EXPECT_NEAR(chi_squared_beyond(4, 3), 0.5578254003710748, kNear);        // chi2.sf(3, 4)
  EXPECT_NEAR(f_quantile(3, 12, 0.975), 4.474184809637748, kNear);         // f.ppf(0.975, 3, 12)
  EXPECT_NEAR(f_upper(3, 12, 0.025), 4.474184809637748, kNear);            // f.isf(0.025, 3, 12)
  EXPECT_NEAR(f_beyond(3, 12, 2), 0.16783155644581718, kNear);             // f.sf(2, 3, 12)
}

TEST(Distributions, TheBinomialIntervalIsTheExactOne) {
  // scipy.stats.binomtest(k, n).proportion_ci(0.95, "exact")
  struct Row {
    std::size_t successes, trials;
    double low, high;
  };
  for (const Row& row : {Row{0, 400, 0, 0.009179804583673406},
                         Row{2, 400, 0.000606097809315731, 0.01794414460558558},
                         Row{20, 20, 0.8315665, 1},
                         Row{18, 20, 0.6830173, 0.9876515}}) {
    const Interval found = binomial_interval(row.successes, row.trials);
    EXPECT_NEAR(found.low, row.low, 1e-6);
    EXPECT_NEAR(found.high, row.high, 1e-6);
  }
  EXPECT_EQ(binomial_interval(0, 0).high, 1);
}

}  // namespace
}  // namespace launchgap::stats
