// Who of a job's ranks is late, by how much, what makes it late, and what the job would take if
// nobody were.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/summary/ranked_job.h"

namespace launchgap {

/// What makes a rank late.
struct LateReason {
  std::optional<StretchPart> part;  // nothing: several for which the GPU waits for the host
  double share = 0;                 // of what the rank is later by than the others' median
};
/// The name of the part, or "host".
std::string_view name_of(const LateReason& reason);

/// How late a rank comes to the steps or collectives to which it comes last.
struct RankLateness {
  std::size_t matched = 0;     // of which all ranks have one
  std::size_t times_last = 0;  // alone
  double chance = 1;           // that some rank is the last so often where all are alike
  double late_ns = 0;          // that the most patient of the others waits for it, all together
  double most_ns = 0;          // in one
  double waiting_ns = 0;       // that it waits itself: its collectives beyond the shortest of each
  std::size_t explained = 0;   // of those to which it comes last, of how many the parts are known
  double longer_ns = 0;        // that its own time is longer there than the others' median
  PartTimes longer{};          // the same of each part: they add up to about that
  bool late = false;           // so much, and so much more than others, that it is worth a word
  std::optional<LateReason> reason = {};  // what makes half of that or more
};

/// What the matched stretches of a job take.
struct JobCost {
  double took_ns = 0;   // in each, the slowest rank's own time and the shortest collective
  double ideal_ns = 0;  // the same with the median of the ranks' own times
  std::vector<double> without_ns;  // by rank, with the others' median instead of its own time
};

struct Lateness {
  std::vector<RankLateness> ranks;
  RankLateness all;      // whichever is the last of each; times_last is how often there is one
  double moving_ns = 0;  // of all collectives, the shortest of the ranks' kernels
  /// Nothing where ranks are missing, where the parts are not known, or where the ranks do not take
  /// as long as they would if they waited for each other.
  std::optional<JobCost> cost = {};
};

/// Of all steps or collectives of a job, or of the collectives of one kernel's name.
/// Docs: definitions.md, "Stragglers".
Lateness lateness_of(const RankedJob& job, std::string_view kind = {});

}  // namespace launchgap
