// Whether the ranks of a job wait for one of them, or for another in each step.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "harness/summary/session_data.h"

namespace launchgap {

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

/// The processes of one job, and their times in the steps that all of them have.
struct RankedJob {
  std::vector<const JobInfo*> ranks;
  std::vector<std::string> names;  // "rank 3", or the file and the process
  std::vector<std::vector<double>> times;
  /// The same with the time in which a GPU only talked to others; empty where some rank has none.
  std::vector<std::vector<double>> whole;
  double length_ns = 0;  // of the longest recording
};

/// The recorded processes of a session, if they are ranks of one job: they have ranks, each
/// another; or they are of one file; or they ran at the same time, by Unix time. Empty if they are
/// not, or have fewer than two steps in common.
RankedJob ranked_job(const SessionData& session);

/// Who comes last to the collectives of a job. The kernel of who comes last is the shortest: the
/// others wait in theirs. Durations tell it, whatever the clocks say.
struct CollectiveCheck {
  std::size_t collectives = 0;  // that all ranks have
  std::size_t last = 0;         // the rank that comes last most often
  std::size_t last_times = 0;
  double chance = 1;     // as StragglerCheck::chance
  double waited_ns = 0;  // by the others for that rank, at the most patient of them
  double most_ns = 0;    // in one collective

  double length_share(double length_ns) const { return length_ns > 0 ? waited_ns / length_ns : 0; }
};
/// By rank, how long each collective took.
CollectiveCheck check_collectives(std::span<const std::vector<double>> ranks);

/// As ranked_job, and `times` are those of collectives: the i-th of one kernel's name on one GPU of
/// each. Empty too if some rank has another number of them.
RankedJob job_by_collectives(const SessionData& session);

}  // namespace launchgap
