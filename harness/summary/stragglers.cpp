#include "harness/summary/stragglers.h"

#include <algorithm>
#include <cmath>

#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace launchgap {

double chance_of_slowest(std::size_t ranks, std::size_t steps, std::size_t slowest) {
  if (slowest == 0) return 1;
  const double one = stats::binomial_at_least(
      static_cast<double>(steps), 1 / static_cast<double>(ranks), static_cast<double>(slowest));
  return std::min(1.0, one * static_cast<double>(ranks));
}

double chance_of_last(std::size_t ranks,
                      std::span<const std::optional<std::size_t>> last,
                      std::size_t rank) {
  const auto is_last = [&](std::size_t i) { return last[i] == rank; };
  double times = 0, changes = 0;
  for (std::size_t i = 0; i < last.size(); ++i) {
    times += is_last(i);
    changes += i > 0 && is_last(i) != is_last(i - 1);
  }
  const auto n = static_cast<double>(last.size());
  const double expected = n > 0 ? 2 * times * (n - times) / n : 0;
  const double fewer = std::min(1.0, (changes + 1) / (expected + 1));
  return chance_of_slowest(ranks,
                           static_cast<std::size_t>(std::ceil(n * fewer)),
                           static_cast<std::size_t>(std::floor(times * fewer)));
}

namespace {

/// Of one step, in the order of ranks.
std::vector<double> times_of(std::span<const std::vector<double>> ranks, std::size_t step) {
  std::vector<double> times;
  for (const std::vector<double>& rank : ranks) times.push_back(rank[step]);
  return times;
}

/// Mean of the slowest less mean of the median rank.
double lost_in_a_step(std::span<const std::vector<double>> ranks) {
  std::vector<double> lost;
  for (std::size_t step = 0; step < ranks.front().size(); ++step) {
    const std::vector<double> times = times_of(ranks, step);
    lost.push_back(std::ranges::max(times) - *stats::median(times));
  }
  return *stats::mean(lost);
}

/// By which share of the others' median a rank is slower, in the median step.
double slower_than_others(std::span<const std::vector<double>> ranks, std::size_t slowest) {
  std::vector<double> slower;
  for (std::size_t step = 0; step < ranks.front().size(); ++step) {
    const std::vector<double> times = times_of(ranks, step);
    const double of_others = *stats::median_of_others(times, slowest);
    if (of_others > 0) slower.push_back(times[slowest] / of_others - 1);
  }
  return stats::median(slower).value_or(0);
}

}  // namespace

StragglerCheck check_stragglers(std::span<const std::vector<double>> ranks,
                                std::span<const std::vector<double>> whole) {
  constexpr std::size_t kFewestSteps = 10;
  constexpr double kCertain = 0.01, kPersistentLoss = 0.02, kRotatingLoss = 0.05;
  StragglerCheck check;
  check.ranks = ranks.size();
  if (ranks.size() < 2 || ranks.front().empty()) return check;
  check.steps = ranks.front().size();
  std::vector<std::size_t> slowest(ranks.size());
  std::vector<double> medians, shares;
  for (std::size_t step = 0; step < check.steps; ++step) {
    const std::vector<double> times = times_of(ranks, step);
    const auto most = std::ranges::max_element(times);
    if (std::ranges::count(times, *most) == 1)
      ++slowest[static_cast<std::size_t>(most - times.begin())];
    medians.push_back(*stats::median(times));
    if (medians.back() > 0) shares.push_back((*most - medians.back()) / medians.back());
  }
  const auto often = std::ranges::max_element(slowest);
  check.slowest = static_cast<std::size_t>(often - slowest.begin());
  check.slowest_steps = *often;
  check.chance = chance_of_slowest(check.ranks, check.steps, check.slowest_steps);
  check.lost_ns = lost_in_a_step(ranks);
  const double usual = *stats::mean(medians);
  check.lost_share = usual > 0 ? check.lost_ns / usual : 0;
  check.usual_share = stats::median(shares).value_or(0);
  check.slower = slower_than_others(ranks, check.slowest);
  // Halfway between chance and always.
  const double often_enough = (1 + 1 / static_cast<double>(check.ranks)) / 2;
  const double share = static_cast<double>(check.slowest_steps) / static_cast<double>(check.steps);
  if (check.chance <= kCertain && share >= often_enough && check.slower >= kPersistentLoss) {
    check.straggler = Straggler::persistent;
    check.waited = !whole.empty() && slower_than_others(whole, check.slowest) <= check.slower / 2;
  } else if (check.steps >= kFewestSteps && check.lost_share >= kRotatingLoss &&
             check.usual_share >= kPersistentLoss) {
    check.straggler = Straggler::rotating;
    check.waited = !whole.empty() && lost_in_a_step(whole) <= check.lost_ns / 2;
  }
  return check;
}

}  // namespace launchgap
