// Ranks that the others wait for.
#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/summary/causes.h"
#include "harness/summary/stragglers.h"

namespace launchgap {
namespace {

constexpr const char* kCompareRanks =
    "Compare that rank's GPU and host with the others': clocks, power, temperature, PCIe, other "
    "processes. See whether it has more work.";

Finding straggler(const RankedJob& job, std::string_view code, const JobInfo* slowest) {
  Finding cause;
  cause.source = FindingSource::cause;
  cause.code = code;
  cause.severity = Severity::act;
  cause.subject = fmt::format("{} ranks", job.ranks.size());
  if (!slowest) return cause;
  cause.device = slowest->device;
  cause.replicate = slowest->replicate;
  return cause;
}

std::string how_slow(const StragglerCheck& check) {
  return fmt::format(
      "the slowest of {} in {} of {} steps, and takes {} longer than the others (p50)",
      check.ranks,
      check.slowest_steps,
      check.steps,
      percent_text(check.slower));
}

/// That it is slow is known, and not that others wait for it.
Finding slow_rank(const RankedJob& job, const StragglerCheck& check) {
  const std::string& slowest = job.names[check.slowest];
  Finding cause = straggler(job, "slow-rank", job.ranks[check.slowest]);
  cause.severity = Severity::note;
  cause.subject = slowest;
  cause.sentence =
      fmt::format("{} is {}; nothing shows that they wait for it.", slowest, how_slow(check));
  cause.unknown = job.whole.empty()
                      ? "whether the others wait: their steps have no collectives of NCCL"
                      : "whether the others wait: their steps are shorter, with all collectives";
  cause.remedy = kCompareRanks;
  return cause;
}

void add_of_steps(const RankedJob& job, std::vector<Finding>& causes) {
  const StragglerCheck check = check_stragglers(job.times, job.whole);
  const std::string& slowest = job.names[check.slowest];
  const bool persistent = check.straggler == Straggler::persistent;
  if (!check.waited) {
    if (persistent) causes.push_back(slow_rank(job, check));
    return;
  }
  Finding& cause = causes.emplace_back(
      persistent ? straggler(job, "persistent-straggler", job.ranks[check.slowest])
                 : straggler(job, "rotating-straggler", nullptr));
  if (persistent) {
    cause.subject = slowest;
    cause.sentence = fmt::format("The ranks wait for {}: it is {}.", slowest, how_slow(check));
    cause.remedy = kCompareRanks;
  } else {
    cause.sentence = fmt::format(
        "The {} ranks wait for a different one from step to step: the slowest takes {} longer than "
        "their median (means).",
        check.ranks,
        percent_text(check.lost_share));
    cause.remedy =
        "Look for what differs from step to step: the length of inputs, loading of data, other "
        "programs on the hosts.";
  }
  cause.evidence = {{"lost in a step (mean)", check.lost_ns, "ns"},
                    {"lost in the median step", check.usual_share, "share"},
                    fmt::format("{} is the slowest in {} of {} steps, chance {}",
                                slowest,
                                check.slowest_steps,
                                check.steps,
                                cause_text::chance(check.chance)),
                    "excluding NCCL time, with which the steps are of one length"};
  cause.share = check.lost_share;
}

void add_of_collectives(const SessionData& session, std::vector<Finding>& causes) {
  constexpr double kLeastShare = 0.02;
  const RankedJob job = job_by_collectives(session);
  if (job.ranks.empty()) return;
  const CollectiveCheck check = check_collectives(job.times);
  if (check.length_share(job.length_ns) < kLeastShare) return;
  const bool certain = check.chance <= cause_text::kCertain;
  const std::string& last = job.names[check.last];
  Finding& cause =
      causes.emplace_back(straggler(job, "late-to-collectives", job.ranks[check.last]));
  cause.subject = last;
  if (!certain) cause.severity = Severity::note;
  cause.share = check.length_share(job.length_ns);
  cause.sentence = fmt::format(
      "{} comes last to {} of {}, and the others wait there for {}, {} of the recording{}.",
      last,
      check.last_times,
      counted(check.collectives, "collective"),
      cause_text::time(check.waited_ns),
      percent_text(*cause.share),
      certain ? "" : "; that it is this one may be chance");
  cause.evidence = {{"most that one collective waits", check.most_ns, "ns"},
                    {"chance that any comes last so often", check.chance, "1"}};
  cause.unknown = "why it comes late: durations tell who waits, and clocks of ranks need not agree";
  cause.remedy = kCompareRanks;
}

}  // namespace

void add_stragglers(const SessionData& session, std::vector<Finding>& causes) {
  const RankedJob job = ranked_job(session);
  if (job.ranks.empty()) return add_of_collectives(session, causes);
  add_of_steps(job, causes);
}

}  // namespace launchgap
