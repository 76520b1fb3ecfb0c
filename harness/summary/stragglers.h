// The ranks of a job, with their times side by side: whether they wait for one of them, or for
// another in each step; who is late, by how much, and what makes it late.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/job_record.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// The time of each part of a stretch, by StretchPart.
using PartTimes = std::array<double, kStretchParts.size()>;

/// The processes of one job, and their times in what all of them have: steps, or collectives.
struct RankedJob {
  std::vector<const JobInfo*> ranks;
  std::vector<std::string> names;  // "rank 3", or the file and the process
  /// By rank, the time of each step without collectives; or of each collective.
  std::vector<std::vector<double>> times;
  /// Of steps, with the time in which a GPU only talked to others; empty where some rank has none.
  std::vector<std::vector<double>> whole;
  /// By rank, what the GPU did in each step, or before each collective; empty where some rank does
  /// not tell.
  std::vector<std::vector<PartTimes>> parts;
  std::vector<std::string> kinds;  // of each collective, its kernel's name; of steps none
  double length_ns = 0;            // of the longest recording
  bool all_recorded = true;        // no rank of the job is missing, as far as is known

  /// What a time is of the recording; 0 where its length is not known.
  double share(double ns) const { return length_ns > 0 ? ns / length_ns : 0; }
};

/// The recorded processes of a session, if they are ranks of one job: they have ranks, each
/// another, and were not recorded at other times; or they are of one file; or they ran at the same
/// time, by Unix time. Empty if they are not, or have fewer than two steps in common, or if the
/// clocks of host and GPU disagree in one and collectives tell more.
RankedJob ranked_job(const SessionData& session);

/// As ranked_job, and `times` are those of collectives: the i-th of one kernel's name on one GPU of
/// each. Empty too if some rank has another number of them.
RankedJob job_by_collectives(const SessionData& session);

/// What forbids to compare the processes of a session that could be ranks, or all of them.
struct RankDoubts {
  std::vector<std::string> names;     // of the processes; none where nothing could be compared
  std::optional<std::int64_t> twice;  // the least rank that several say to be
  bool other_times = false;           // they were recorded, by Unix time, when others were not
  bool untied = false;                // nothing tells that they are of one job
  bool nothing_common = false;        // they have neither steps nor collectives in common
  std::vector<std::size_t> steps, collectives;  // how many each process has
  std::vector<std::int64_t> missing;            // the first ranks that are missing
  std::uint64_t missing_count = 0;
};
RankDoubts rank_doubts(const SessionData& session);

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
