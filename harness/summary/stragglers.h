// Whether the ranks of a job wait for one of them, or for another in each step.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace launchgap {

/// That any of k ranks is the slowest in so many of n steps, if each is with 1/k: Bonferroni's
/// bound of the largest of k binomial numbers.
double chance_of_slowest(std::size_t ranks, std::size_t steps, std::size_t slowest);

/// The same of collectives, of which several of one step are alike: who is slow in it comes last to
/// all of them. So they count as fewer, by how seldom it changes whether this rank is last: by the
/// changes and one, over those that k of n in random order have, 2 k (n - k) / n, and one. `last`:
/// of each, nothing where none is alone.
double chance_of_last(std::size_t ranks,
                      std::span<const std::optional<std::size_t>> last,
                      std::size_t rank);

enum class Straggler {
  none,
  persistent,  // one rank is the slowest far more often than chance makes it
  rotating,    // the slowest is another one in each step, and the others wait for it
};

struct StragglerCheck {
  Straggler straggler = Straggler::none;
  std::size_t ranks = 0, steps = 0;
  std::size_t slowest = 0;        // the rank that is the slowest most often
  std::size_t slowest_steps = 0;  // in so many steps, alone
  double chance = 1;              // that some rank is the slowest so often where all are alike
  double slower = 0;              // by which share of the others' median, in the median step
  double lost_ns = 0;             // a step: mean of the slowest less mean of the median rank
  double lost_share = 0;          // of the mean of the median rank
  double usual_share = 0;         // the same of each step, and of these the median
  bool waited = false;            // the whole steps are of one length, which shows that they wait
};

/// Each rank's time in each step, of the steps that all of them have. `whole`: with the time in
/// which it only waits for the others, which is not in `ranks`; empty where that is not known.
/// Docs: definitions.md, "Stragglers".
StragglerCheck check_stragglers(std::span<const std::vector<double>> ranks,
                                std::span<const std::vector<double>> whole = {});

}  // namespace launchgap
