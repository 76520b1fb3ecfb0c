// Ranks that the others wait for.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/summary/causes.h"
#include "harness/summary/stragglers.h"

namespace launchgap {
namespace {

constexpr const char* kCompareRanks =
    "Compare that rank's GPU and host with the others': clocks, power, temperature, PCIe, other "
    "processes. See whether it has more work.";

/// What makes a rank late, as a sentence has it, and what to do; by StretchPart.
struct Reason {
  std::string_view words, remedy;
};
constexpr std::array<Reason, kStretchParts.size()> kReasons = {{
    {"Its kernels take longer",
     "Compare that rank's GPU with the others': clocks, power, temperature, other processes. See "
     "whether it has more work."},
    {"Its copies take longer",
     "Look at that rank's copies: how much it copies, pinned memory, its PCIe link, its NUMA "
     "node."},
    {"Its input takes longer",
     "Look at how that rank loads its data: workers, storage, pinned memory, longer inputs."},
    {"Its GPU waits longer for the program, outside of CUDA",
     "Look at that rank's host: its CPUs, other processes there, what its program does between "
     "launches."},
    {"Its launches take longer",
     "Look at what slows that rank's launch calls: its CPU's clock, a profiler, other threads in "
     "CUDA. Graphs launch many kernels at once."},
    {"Its program waits longer for the GPU",
     "Look for waits that only this rank has: printing of values, checkpoints, metrics."},
    {"Its allocations take longer",
     "Allocate before the loop, or from a pool that keeps memory; see whether this rank's memory "
     "is "
     "short."},
    {"Its other calls of CUDA take longer",
     "Look for calls of CUDA that only this rank makes: contexts, events, host memory, files."},
    {"", ""},
    {"", ""},
}};
constexpr Reason kHostReason = {
    "Its GPU waits longer for the host, for more than one thing",
    "Look at what that rank's host does before: first launches, allocations, work of the program."};

/// "kernels 93 %, program 5 %": what is longer, the most first.
std::string parts_text(const RankLateness& own) {
  constexpr double kLeastNamed = 0.01;
  std::vector<std::pair<double, std::string_view>> parts;
  for (std::size_t part = 0; part < own.longer.size(); ++part)
    parts.emplace_back(own.longer[part], kStretchParts[part].name);
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  for (const auto& [ns, name] : parts) {
    if (own.longer_ns > 0 && ns >= kLeastNamed * own.longer_ns)
      texts.push_back(fmt::format("{} {}", name, percent_text(ns / own.longer_ns)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Adds to a finding what makes the rank late that it is about.
void add_reason(const RankLateness& own, const char* units, Finding& cause) {
  if (own.reason) {
    const Reason& reason =
        own.reason->part ? kReasons[static_cast<std::size_t>(*own.reason->part)] : kHostReason;
    cause.sentence += fmt::format(
        " {}, which explains {} of that.", reason.words, percent_text(own.reason->share));
    cause.remedy = reason.remedy;
  } else {
    cause.unknown = own.explained == 0 ? "why it is late: nothing tells what the GPU did before"
                    : !own.late        ? "why it is late: another rank is late by much too"
                                       : "why it is late: no part of its time makes half of that";
  }
  const std::string parts = parts_text(own);
  if (own.explained == 0 || parts.empty()) return;
  cause.evidence.emplace_back(fmt::format(
      "by what it is later to {} of {} {}: {}", own.explained, own.times_last, units, parts));
}

/// What the ranks would take without their differences.
void add_cost(const Lateness& lateness, const char* units, Finding& cause) {
  if (!lateness.cost) return;
  const JobCost& cost = *lateness.cost;
  cause.evidence.emplace_back(
      fmt::format("the {} take {}, and would take {} if in each all ranks took their median: {} "
                  "times as long",
                  units,
                  cause_text::time(cost.took_ns),
                  cause_text::time(cost.ideal_ns),
                  fmt::format("{:.3g}", cost.took_ns / cost.ideal_ns)));
}

Finding straggler(const RankedJob& job, std::string_view code, const JobInfo* slowest) {
  Finding cause = new_finding(
      FindingSource::cause, code, Severity::act, fmt::format("{} ranks", job.ranks.size()));
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
Finding slow_rank(const RankedJob& job, const StragglerCheck& check, const Lateness& lateness) {
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
  const std::string waited = cause.unknown;
  add_reason(lateness.ranks[check.slowest], "steps", cause);
  cause.unknown = waited;
  return cause;
}

void add_of_steps(const RankedJob& job, std::vector<Finding>& causes) {
  const StragglerCheck check = check_stragglers(job.times, job.whole);
  const Lateness lateness = lateness_of(job);
  const std::string& slowest = job.names[check.slowest];
  const bool persistent = check.straggler == Straggler::persistent;
  if (!check.waited) {
    if (persistent) causes.push_back(slow_rank(job, check, lateness));
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
  add_reason(persistent ? lateness.ranks[check.slowest] : lateness.all, "steps", cause);
  add_cost(lateness, "steps", cause);
}

void add_of_collectives(const SessionData& session, std::vector<Finding>& causes) {
  constexpr double kLeastShare = 0.02;
  const RankedJob job = job_by_collectives(session);
  if (job.ranks.empty()) return;
  const Lateness lateness = lateness_of(job);
  const auto most = std::ranges::max_element(lateness.ranks, {}, &RankLateness::times_last);
  if (most == lateness.ranks.end() || job.share(most->late_ns) < kLeastShare) return;
  const RankLateness& own = *most;
  const auto rank = static_cast<std::size_t>(most - lateness.ranks.begin());
  const bool certain = own.chance <= cause_text::kCertain;
  Finding& cause = causes.emplace_back(straggler(job, "late-to-collectives", job.ranks[rank]));
  cause.subject = job.names[rank];
  if (!certain) cause.severity = Severity::note;
  cause.share = job.share(own.late_ns);
  cause.sentence = fmt::format(
      "{} comes last to {} of {}, and the others wait there for {}, {} of the recording{}.",
      cause.subject,
      own.times_last,
      counted(own.matched, "collective"),
      cause_text::time(own.late_ns),
      percent_text(*cause.share),
      certain ? "" : "; that it is this one may be chance");
  cause.evidence = {{"most that one collective waits", own.most_ns, "ns"},
                    {"chance that any comes last so often", own.chance, "1"}};
  cause.remedy = kCompareRanks;
  add_reason(own, "collectives", cause);
  add_cost(lateness, "collectives and what is before them", cause);
}

std::string some_names(const RankDoubts& doubts) {
  std::vector<std::string> names = doubts.names;
  if (names.size() > cause_text::kMostNamed + 1) {
    names.resize(cause_text::kMostNamed);
    names.push_back(fmt::format("{} more", doubts.names.size() - names.size()));
  }
  return list_text(names);
}

/// Why nothing, or not all, can be said of the ranks.
void add_doubts(const RankDoubts& doubts, std::vector<Finding>& causes) {
  if (doubts.names.empty()) return;
  Finding cause = new_finding(FindingSource::cause,
                              "ranks-not-compared",
                              Severity::note,
                              fmt::format("{} ranks", doubts.names.size()));
  cause.remedy = "Import one recording of each rank, all of the same run and the same steps.";
  const std::string names = some_names(doubts);
  if (doubts.twice) {
    cause.sentence = fmt::format(
        "Several recordings say that they are rank {}, so no rank is compared with another.",
        *doubts.twice);
  } else if (doubts.other_times) {
    cause.sentence = fmt::format(
        "The recordings of {} have no time in common, so they are not compared.", names);
  } else if (doubts.untied) {
    cause.sentence =
        fmt::format("Nothing tells that {} are ranks of one job, so they are not compared.", names);
    cause.unknown = "their ranks, and whether they ran at the same time";
  } else if (doubts.nothing_common) {
    cause.sentence = fmt::format(
        "The recordings of {} have no steps in common and not the same collectives, so who is late "
        "is not known.",
        names);
    for (std::size_t i = 0; i < std::min(doubts.names.size(), cause_text::kMostNamed); ++i)
      cause.evidence.emplace_back(fmt::format("{}: {}, {}",
                                              doubts.names[i],
                                              counted(doubts.steps[i], "step"),
                                              counted(doubts.collectives[i], "collective")));
    cause.remedy += " `--step NAME` names what is a step.";
  }
  if (!cause.sentence.empty()) causes.push_back(cause);
  if (doubts.missing_count == 0) return;
  std::vector<std::string> missing;
  for (const std::int64_t rank : doubts.missing) missing.push_back(fmt::format("rank {}", rank));
  if (doubts.missing_count > missing.size())
    missing.push_back(fmt::format("{} more", doubts.missing_count - missing.size()));
  cause.code = "ranks-missing";
  cause.evidence.clear();
  cause.sentence = fmt::format(
      "{} of {} ranks were recorded: {} {} missing, and who is last is said of the others alone.",
      doubts.names.size(),
      doubts.names.size() + doubts.missing_count,
      list_text(missing),
      doubts.missing_count == 1 ? "is" : "are");
  cause.unknown = "whether those that were recorded wait for one that was not";
  causes.push_back(std::move(cause));
}

}  // namespace

bool tells_who_is_late(const Finding& finding) {
  constexpr std::string_view kCodes[] = {
      "persistent-straggler", "rotating-straggler", "slow-rank", "late-to-collectives"};
  return std::ranges::find(kCodes, finding.code) != std::end(kCodes);
}

void add_stragglers(const SessionData& session, std::vector<Finding>& causes) {
  add_doubts(rank_doubts(session), causes);
  const RankedJob job = ranked_job(session);
  if (job.ranks.empty()) return add_of_collectives(session, causes);
  add_of_steps(job, causes);
}

}  // namespace launchgap
